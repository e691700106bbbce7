//! A command from start to end, with its output collected.

use std::time::Duration;

use sandyard_wire::event::{self, EndEvent, ProcessEvent};
use sandyard_wire::process::{ProcessConfig, StartRequest};
use sandyard_wire::routes::process as route;

use crate::call::within;
use crate::client::AgentClient;
use crate::error::{ClientError, Result};
use crate::process::StartOptions;

/// Extra time for the agent to kill a command that timed out and to report it.
const GRACE: Duration = Duration::from_secs(10);

/// How to run a command.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// How long it may take.
    pub timeout: Duration,
    /// Maximum bytes of standard output, and of standard error.
    pub max_output: usize,
    /// The user that runs it; `None`: the client's user, or the sandbox's default user.
    pub user: Option<String>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(60),
            max_output: 8 << 20,
            user: None,
        }
    }
}

/// What a command wrote and how it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    /// From standard output, up to the limit.
    pub stdout: Vec<u8>,
    /// From standard error, up to the limit.
    pub stderr: Vec<u8>,
    /// Whether output beyond the limit was dropped.
    pub is_truncated: bool,
    /// How it ended.
    pub exit: EndEvent,
}

impl AgentClient {
    /// Runs a command without input and waits for its end.
    pub async fn run(&self, process: ProcessConfig, options: &RunOptions) -> Result<Output> {
        let request = StartRequest {
            process,
            stdin: Some(false),
            ..StartRequest::default()
        };
        let start = StartOptions {
            timeout: Some(options.timeout),
            user: options.user.clone(),
            retain_as: None,
        };
        within(route::START, options.timeout + GRACE, async {
            let mut stream = self.start(&request, &start).await?;
            let mut output = Output::default();
            while let Some(event) = stream.next().await {
                match event? {
                    ProcessEvent::Data(data) => output.append(&data, options.max_output),
                    ProcessEvent::End(exit) => return Ok(Output { exit, ..output }),
                    _ => {}
                }
            }
            Err(ClientError::protocol(
                route::START,
                "stream ends before the command does",
            ))
        })
        .await
    }
}

impl Output {
    fn append(&mut self, data: &event::Output, max: usize) {
        let buffer = match data {
            event::Output::Stderr(_) => &mut self.stderr,
            event::Output::Stdout(_) | event::Output::Pty(_) => &mut self.stdout,
        };
        let bytes = data.bytes();
        let space = max.saturating_sub(buffer.len()).min(bytes.len());
        buffer.extend_from_slice(&bytes[..space]);
        self.is_truncated |= space < bytes.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn output_over_the_limit_is_truncated_and_marked() {
        let mut output = Output::default();
        output.append(&event::Output::Stdout(Bytes::from_static(b"abc")), 4);
        assert!(!output.is_truncated);
        output.append(&event::Output::Stdout(Bytes::from_static(b"def")), 4);
        output.append(&event::Output::Stderr(Bytes::from_static(b"e")), 4);
        assert_eq!(
            (&*output.stdout, &*output.stderr),
            (&b"abcd"[..], &b"e"[..])
        );
        assert!(output.is_truncated);
    }
}
