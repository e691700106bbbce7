//! Runs a CLI that prints JSON lines.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

use super::MAX_TIMEOUT;
use crate::call::Call;
use crate::process::{OutputTail, ProcessGroup};
use crate::reply::{Problem, Result};

/// Maximum length of a line; longer lines are skipped.
const MAX_LINE: u64 = 16 * 1024 * 1024;
/// How long to read output after the program ended. Another process may keep the output open.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// A CLI to run.
pub(super) struct Job {
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(&'static str, &'static str)>,
    pub(super) folder: PathBuf,
    /// Written to its standard input, so that it is not on the command line.
    pub(super) prompt: String,
    pub(super) seconds: u64,
}

/// How the CLI ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: Option<ExitStatus>,
    pub(super) duration: Duration,
    pub(super) stderr_tail: String,
    pub(super) end: End,
}

/// Why the CLI ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    Itself,
    TimedOut,
    Cancelled,
}

/// Runs the CLI. Calls `record` with each line, and reports the texts that it returns as progress.
pub(super) async fn run(
    job: Job,
    call: &Call,
    mut record: impl FnMut(Value) -> Vec<String>,
) -> Result<Ended> {
    if !(1..=MAX_TIMEOUT).contains(&job.seconds) {
        return Err(Problem::new(format!(
            "timeout must be 1 to {MAX_TIMEOUT} seconds"
        )));
    }
    let started_at = Instant::now();
    let mut group = start(&job)?;
    let stderr_tail = OutputTail::default();
    if let Some(stderr) = group.child.stderr.take() {
        tokio::spawn(stderr_tail.clone().follow(stderr));
    }
    if let Some(mut stdin) = group.child.stdin.take() {
        tokio::spawn(async move {
            // The program reports itself if it does not read all of it.
            let _ = stdin.write_all(job.prompt.as_bytes()).await;
        });
    }
    let lines = group.child.stdout.take();
    let reading = async {
        let Some(stdout) = lines else { return };
        let mut lines = BufReader::new(stdout);
        while let Some(line) = next_line(&mut lines).await {
            let Ok(value) = serde_json::from_slice(&line) else {
                continue;
            };
            for text in record(value) {
                call.progress.report(text).await;
            }
        }
    };
    let working = async {
        let mut reading = std::pin::pin!(reading);
        let status = tokio::select! {
            status = group.wait() => status,
            () = &mut reading => return group.wait().await,
        };
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, reading).await;
        status
    };
    let (status, end) = tokio::select! {
        status = working => (Some(status), End::Itself),
        () = tokio::time::sleep(Duration::from_secs(job.seconds)) => (None, End::TimedOut),
        () = call.cancelled.cancelled() => (None, End::Cancelled),
    };
    let status = match status {
        Some(status) => {
            // Processes that the agent started for its user, such as a web server, continue.
            group.detach();
            status.ok()
        }
        None => {
            let _ = group.kill().await;
            None
        }
    };
    Ok(Ended {
        status,
        duration: started_at.elapsed(),
        stderr_tail: stderr_tail.final_text().await,
        end,
    })
}

fn start(job: &Job) -> Result<ProcessGroup> {
    let mut command = Command::new(&job.program);
    command
        .args(&job.args)
        .envs(job.env.iter().copied())
        .current_dir(&job.folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    ProcessGroup::start(command)
        .map_err(|error| Problem::new(format!("cannot start {}: {error}", job.program.display())))
}

/// The next line; empty if it is too long.
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

/// A text as one line, truncated.
pub(super) fn one_line(text: &str, limit: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut short: String = line.chars().take(limit).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    short
}

impl Ended {
    /// Returns whether the CLI ended without being stopped, and succeeded.
    pub(super) fn is_success(&self) -> bool {
        self.end == End::Itself && self.status.is_some_and(|status| status.success())
    }

    /// The text for a failure.
    pub(super) fn failure_text(&self, name: &str, seconds: u64) -> String {
        match self.end {
            End::TimedOut => format!(
                "{name} was killed after {seconds} seconds: set a longer timeout or give a smaller task"
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
    async fn lines_are_read_one_by_one_and_long_ones_are_skipped() {
        let mut text = vec![b'x'; usize::try_from(MAX_LINE).unwrap() + 10];
        text.extend_from_slice(b"\nshort\nlast");
        let mut lines = BufReader::new(text.as_slice());
        assert_eq!(next_line(&mut lines).await.unwrap(), b"");
        assert_eq!(next_line(&mut lines).await.unwrap(), b"short\n");
        assert_eq!(next_line(&mut lines).await.unwrap(), b"last");
        assert!(next_line(&mut lines).await.is_none());
    }

    #[test]
    fn a_text_becomes_one_short_line() {
        assert_eq!(one_line(" a\n b ", 10), "a b");
        assert_eq!(one_line("äöüß", 2), "äö…");
    }
}
