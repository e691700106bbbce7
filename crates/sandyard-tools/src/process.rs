//! Programs that end together with everything they started.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use crate::shell::stop::{Process, kill_tree};

/// A program in a process group of its own, which is killed when this is dropped, with all that was started from it.
#[derive(Debug)]
pub(crate) struct Group {
    /// The program itself.
    pub(crate) child: Child,
    id: Option<Pid>,
}

impl Group {
    /// Starts a program.
    pub(crate) fn start(mut command: Command) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        let id = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        Ok(Self { child, id })
    }

    /// Waits for the program itself; what it started may go on.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Ends all of it now.
    pub(crate) async fn kill(mut self) -> io::Result<ExitStatus> {
        self.kill_group();
        self.child.wait().await
    }

    /// Lets the program end by itself for a while, then ends all of it.
    pub(crate) async fn end_within(mut self, limit: Duration) -> io::Result<ExitStatus> {
        if let Ok(ended) = tokio::time::timeout(limit, self.child.wait()).await {
            return ended;
        }
        self.kill().await
    }

    /// Leaves what is still running of it alone.
    pub(crate) fn leave(mut self) {
        self.id = None;
    }

    fn kill_group(&self) {
        if let Some(id) = self.id {
            // What has left the group is only known for as long as the program is there.
            if self.child.id().is_some()
                && let Some(process) = Process::of(id)
            {
                kill_tree(process);
            }
            // Nobody left is what was wanted.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill_group();
    }
}

/// The last words of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail {
    kept: Arc<Mutex<Vec<u8>>>,
    ended: CancellationToken,
}

/// How much of the last words is kept.
const TAIL: usize = 4096;
/// How long the last words may take once the program has ended: something it left behind may hold its output.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl Tail {
    /// Reads a stream to its end and keeps the last of it.
    pub(crate) async fn follow(self, mut stream: impl AsyncRead + Unpin) {
        let _ended = self.ended.clone().drop_guard();
        let mut piece = vec![0; TAIL];
        while let Ok(length) = stream.read(&mut piece).await {
            if length == 0 {
                return;
            }
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(piece.get(..length).unwrap_or_default());
            let excess = kept.len().saturating_sub(TAIL);
            kept.drain(..excess);
        }
    }

    /// The last words of a program that has ended.
    pub(crate) async fn last_words(&self) -> String {
        let _ = tokio::time::timeout(LAST_WORDS, self.ended.cancelled()).await;
        self.text()
    }

    /// The last words so far, without control characters.
    pub(crate) fn text(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&kept);
        let plain = |c: &char| !c.is_control() || *c == '\n';
        text.trim().chars().filter(plain).collect()
    }
}

/// The file a program's name means: in one of these folders, or where a shell would find it.
pub(crate) fn find_program(name: &str, more: &[&Path]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = more.iter().map(|folder| folder.to_path_buf());
    let mut files = more
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join(name));
    files.find(|file| is_program(file))
}

/// Whether a file can be run by us, wherever we are.
pub(crate) fn is_program(file: &Path) -> bool {
    file.is_absolute()
        && file.is_file()
        && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    #[tokio::test]
    async fn everything_a_program_started_ends_with_it() {
        let mut command = Command::new("sh");
        command
            .args(["-c", "sleep 1000 & echo $!; wait"])
            .stdout(Stdio::piped());
        let mut group = Group::start(command).unwrap();
        let mut output = group.child.stdout.take().unwrap();
        let mut line = vec![0; 32];
        let length = output.read(&mut line).await.unwrap();
        let sleeper: i32 = String::from_utf8_lossy(&line[..length])
            .trim()
            .parse()
            .unwrap();
        drop(group);
        // The pipe closes when the last of them is gone.
        assert_eq!(output.read(&mut line).await.unwrap(), 0);
        let stat = format!("/proc/{sleeper}/stat");
        for _ in 0..9000 {
            let status = std::fs::read_to_string(&stat).unwrap_or_default();
            if status.is_empty() || status.contains(") Z") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{sleeper} is still there");
    }

    #[tokio::test]
    async fn what_left_the_group_ends_too() {
        let mut command = Command::new("sh");
        command
            .args(["-c", "setsid sh -c 'echo ready; sleep 1001; :' & wait"])
            .stdout(Stdio::piped());
        let mut group = Group::start(command).unwrap();
        let mut output = group.child.stdout.take().unwrap();
        let mut line = vec![0; 32];
        assert_eq!(output.read(&mut line).await.unwrap(), 6);
        group.kill().await.unwrap();
        // The pipe closes when the last of them is gone.
        let end = tokio::time::timeout(Duration::from_secs(90), output.read(&mut line));
        assert_eq!(end.await.unwrap().unwrap(), 0);
    }

    #[tokio::test]
    async fn only_the_last_words_are_kept() {
        let tail = Tail::default();
        let long = format!("{}the end\x07\n", "x".repeat(TAIL * 3));
        tail.clone().follow(long.as_bytes()).await;
        assert!(tail.text().ends_with("xthe end"));
        assert!(tail.text().len() <= TAIL);
    }

    #[test]
    fn programs_are_found_like_a_shell_does() {
        assert!(find_program("sh", &[]).is_some());
        assert!(find_program("no-such-program-at-all", &[]).is_none());
    }
}
