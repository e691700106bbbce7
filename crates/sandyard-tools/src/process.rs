//! Process groups that end together with every process they started.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use crate::shell::stop::{Process, kill_tree};

/// A program in its own process group. Dropping this kills the program and every process started from it.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    /// The program itself.
    pub(crate) child: Child,
    id: Option<Pid>,
}

impl ProcessGroup {
    /// Starts a program.
    pub(crate) fn start(mut command: Command) -> io::Result<Self> {
        let child = command.process_group(0).spawn()?;
        let id = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        Ok(Self { child, id })
    }

    /// Waits for the program itself. Processes that it started may continue.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Kills the program and everything it started.
    pub(crate) async fn kill(mut self) -> io::Result<ExitStatus> {
        self.kill_group();
        self.child.wait().await
    }

    /// Waits for the program to end, then kills it with everything it started.
    pub(crate) async fn end_within(mut self, limit: Duration) -> io::Result<ExitStatus> {
        if let Ok(ended) = tokio::time::timeout(limit, self.child.wait()).await {
            return ended;
        }
        self.kill().await
    }

    /// Leaves remaining processes running.
    pub(crate) fn detach(mut self) {
        self.id = None;
    }

    fn kill_group(&self) {
        if let Some(id) = self.id {
            // Processes that left the group can be found only while the program exists.
            if self.child.id().is_some()
                && let Some(process) = Process::of(id)
            {
                kill_tree(process);
            }
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill_group();
    }
}

/// The end of a program's output.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutputTail {
    bytes: Arc<Mutex<Vec<u8>>>,
    ended: CancellationToken,
}

/// Number of bytes to keep.
const MAX_BYTES: usize = 4096;
/// How long to wait for the rest of the output after the program ended. Another process may keep the output open.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

impl OutputTail {
    /// Reads a stream to its end and keeps its last bytes.
    pub(crate) async fn follow(self, mut stream: impl AsyncRead + Unpin) {
        let _ended = self.ended.clone().drop_guard();
        let mut chunk = vec![0; MAX_BYTES];
        while let Ok(length) = stream.read(&mut chunk).await {
            if length == 0 {
                return;
            }
            let mut bytes = self.bytes.lock();
            bytes.extend_from_slice(chunk.get(..length).unwrap_or_default());
            let excess = bytes.len().saturating_sub(MAX_BYTES);
            bytes.drain(..excess);
        }
    }

    /// The text after the program ended.
    pub(crate) async fn final_text(&self) -> String {
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, self.ended.cancelled()).await;
        self.text()
    }

    /// The text so far, without control characters.
    pub(crate) fn text(&self) -> String {
        let bytes = self.bytes.lock();
        let text = String::from_utf8_lossy(&bytes);
        let plain = |c: &char| !c.is_control() || *c == '\n';
        text.trim().chars().filter(plain).collect()
    }
}

/// Finds a program in these folders or in `PATH`.
pub(crate) fn find_program(name: &str, folders: &[&Path]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = folders.iter().map(|folder| folder.to_path_buf());
    let mut files = folders
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join(name));
    files.find(|file| is_program(file))
}

/// Returns whether a path is absolute and names a program that we may run.
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
    async fn child_processes_end_with_the_program() {
        let mut command = Command::new("sh");
        command
            .args(["-c", "sleep 1000 & echo $!; wait"])
            .stdout(Stdio::piped());
        let mut group = ProcessGroup::start(command).unwrap();
        let mut output = group.child.stdout.take().unwrap();
        let mut line = vec![0; 32];
        let length = output.read(&mut line).await.unwrap();
        let sleeper: i32 = String::from_utf8_lossy(&line[..length])
            .trim()
            .parse()
            .unwrap();
        drop(group);
        // The pipe closes when the last process is gone.
        assert_eq!(output.read(&mut line).await.unwrap(), 0);
        let stat = format!("/proc/{sleeper}/stat");
        for _ in 0..9000 {
            let status = std::fs::read_to_string(&stat).unwrap_or_default();
            if status.is_empty() || status.contains(") Z") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("process {sleeper} still exists");
    }

    #[tokio::test]
    async fn processes_that_left_the_group_end_too() {
        let mut command = Command::new("sh");
        command
            .args(["-c", "setsid sh -c 'echo ready; sleep 1001; :' & wait"])
            .stdout(Stdio::piped());
        let mut group = ProcessGroup::start(command).unwrap();
        let mut output = group.child.stdout.take().unwrap();
        let mut line = vec![0; 32];
        assert_eq!(output.read(&mut line).await.unwrap(), 6);
        group.kill().await.unwrap();
        // The pipe closes when the last process is gone.
        let end = tokio::time::timeout(Duration::from_secs(90), output.read(&mut line));
        assert_eq!(end.await.unwrap().unwrap(), 0);
    }

    #[tokio::test]
    async fn only_the_end_of_the_output_is_kept() {
        let tail = OutputTail::default();
        let long = format!("{}the end\x07\n", "x".repeat(MAX_BYTES * 3));
        tail.clone().follow(long.as_bytes()).await;
        assert!(tail.text().ends_with("xthe end"));
        assert!(tail.text().len() <= MAX_BYTES);
    }

    #[test]
    fn programs_are_found_in_path() {
        assert!(find_program("sh", &[]).is_some());
        assert!(find_program("no-such-program-at-all", &[]).is_none());
    }
}
