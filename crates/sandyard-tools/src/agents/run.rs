//! Running a CLI that tells what it does in lines of JSON.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

use super::MAX_TIMEOUT;
use crate::call::Call;
use crate::process::{Group, Tail};
use crate::reply::Problem;

/// Longest line; longer ones are passed over.
const MAX_LINE: u64 = 16 * 1024 * 1024;
/// How long the last lines may take once the program has ended: something it left behind may hold its output.
const LAST_LINES: Duration = Duration::from_secs(2);

/// A CLI to run.
pub(super) struct Job {
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(&'static str, &'static str)>,
    pub(super) folder: PathBuf,
    /// Goes to its standard input: neither a shell nor the command line sees it.
    pub(super) prompt: String,
    pub(super) seconds: u64,
}

/// How it ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: Option<ExitStatus>,
    pub(super) took: Duration,
    pub(super) complaints: String,
    pub(super) end: End,
}

/// What ended it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    Itself,
    TimedOut,
    Cancelled,
}

/// Runs it; every line is given to `hear`, and what that makes of it is told as progress.
pub(super) async fn run(
    job: Job,
    call: &Call,
    mut hear: impl FnMut(Value) -> Vec<String>,
) -> Result<Ended, Problem> {
    if !(1..=MAX_TIMEOUT).contains(&job.seconds) {
        return Err(Problem::new(format!(
            "timeout must be 1 to {MAX_TIMEOUT} seconds"
        )));
    }
    let began = Instant::now();
    let mut group = start(&job)?;
    let complaints = Tail::default();
    if let Some(stderr) = group.child.stderr.take() {
        tokio::spawn(complaints.clone().follow(stderr));
    }
    if let Some(mut stdin) = group.child.stdin.take() {
        tokio::spawn(async move {
            // A program that does not want to hear all of it says so itself.
            let _ = stdin.write_all(job.prompt.as_bytes()).await;
        });
    }
    let lines = group.child.stdout.take();
    let hearing = async {
        let Some(stdout) = lines else { return };
        let mut lines = BufReader::new(stdout);
        while let Some(line) = next_line(&mut lines).await {
            let Ok(value) = serde_json::from_slice(&line) else {
                continue;
            };
            for words in hear(value) {
                call.progress.tell(words).await;
            }
        }
    };
    let working = async {
        let mut hearing = std::pin::pin!(hearing);
        let status = tokio::select! {
            status = group.wait() => status,
            () = &mut hearing => return group.wait().await,
        };
        let _ = tokio::time::timeout(LAST_LINES, hearing).await;
        status
    };
    let (status, end) = tokio::select! {
        status = working => (Some(status), End::Itself),
        () = tokio::time::sleep(Duration::from_secs(job.seconds)) => (None, End::TimedOut),
        () = call.cancelled.cancelled() => (None, End::Cancelled),
    };
    let status = match status {
        Some(status) => {
            // What the agent started for its user, like a web server, is to go on.
            group.leave();
            status.ok()
        }
        None => {
            let _ = group.kill().await;
            None
        }
    };
    Ok(Ended {
        status,
        took: began.elapsed(),
        complaints: complaints.last_words().await,
        end,
    })
}

fn start(job: &Job) -> Result<Group, Problem> {
    let mut command = Command::new(&job.program);
    command
        .args(&job.args)
        .envs(job.env.iter().copied())
        .current_dir(&job.folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Group::start(command).map_err(|error| {
        Problem::new(format!(
            "{} could not be started: {error}",
            job.program.display()
        ))
    })
}

/// The next line; one that is too long is empty.
async fn next_line(lines: &mut (impl AsyncBufReadExt + Unpin)) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let length = (&mut *lines)
        .take(MAX_LINE)
        .read_until(b'\n', &mut line)
        .await
        .ok()?;
    if length == 0 {
        return None;
    }
    if line.ends_with(b"\n") || (length as u64) < MAX_LINE {
        return Some(line);
    }
    line.clear();
    loop {
        let ready = lines.fill_buf().await.ok()?;
        if ready.is_empty() {
            return Some(line);
        }
        match ready.iter().position(|byte| *byte == b'\n') {
            Some(place) => {
                lines.consume(place + 1);
                return Some(line);
            }
            None => {
                let length = ready.len();
                lines.consume(length);
            }
        }
    }
}

/// One line of at most so many characters.
pub(super) fn one_line(text: &str, limit: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut short: String = line.chars().take(limit).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}

impl Ended {
    /// Whether it ended by itself and well.
    pub(super) fn is_success(&self) -> bool {
        self.end == End::Itself && self.status.is_some_and(|status| status.success())
    }

    /// What a failure is told with.
    pub(super) fn words(&self, name: &str, seconds: u64) -> String {
        match self.end {
            End::TimedOut => format!(
                "{name} was ended after {seconds} seconds: give it more time (timeout) or a smaller task"
            ),
            End::Cancelled => format!("{name} was cancelled"),
            End::Itself => {
                let status = self
                    .status
                    .map(|status| status.to_string())
                    .unwrap_or_default();
                format!("{name} ended with {status}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_read_one_by_one_and_long_ones_passed_over() {
        let mut text = vec![b'x'; usize::try_from(MAX_LINE).unwrap() + 10];
        text.extend_from_slice(b"\nshort\nlast");
        let mut lines = BufReader::new(text.as_slice());
        assert_eq!(next_line(&mut lines).await.unwrap(), b"");
        assert_eq!(next_line(&mut lines).await.unwrap(), b"short\n");
        assert_eq!(next_line(&mut lines).await.unwrap(), b"last");
        assert!(next_line(&mut lines).await.is_none());
    }

    #[test]
    fn a_line_is_short() {
        assert_eq!(one_line(" a\n b ", 10), "a b");
        assert_eq!(one_line("äöüß", 2), "äö…");
    }
}
