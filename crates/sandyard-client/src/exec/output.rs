//! Output of a running command.

use std::sync::Arc;
use std::time::Instant;

use bytes::{Buf as _, Bytes};
use futures_util::StreamExt;
use tokio::task::AbortHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::message::{ServerMessage, Start};
use super::reconnect::Target;
use super::session::Session;
use super::{OPERATION, Source, connection_error};
use crate::Result;
use crate::error::ClientError;

/// Event of a running command or of its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExecEvent {
    /// The command started.
    Start {
        /// Process ID inside the sandbox.
        pid: u32,
    },
    /// The command wrote to its standard output or terminal.
    Stdout(Bytes),
    /// The command wrote to its standard error.
    Stderr(Bytes),
    /// The connection was lost. The command keeps running, and the next call reconnects to it.
    Disconnected,
    /// The connection was restored; output continues where it was cut off.
    Reconnected {
        /// Number of bytes of output that are missing because the sandbox no longer keeps them.
        missing: u64,
    },
    /// The command ended. This is the last event.
    Exit {
        /// Exit code, or 128 + n if signal n ended the command.
        exit_code: i32,
    },
}

/// Output of a running command.
#[derive(Debug)]
pub struct ExecOutput {
    source: Source,
    session: Arc<Session>,
    target: Target,
    /// Start message of the command, if the server can reconnect to it.
    process: Option<Start>,
    /// Number of bytes of output that were returned to the caller.
    offset: u64,
    /// Number of bytes to skip, because they were returned before the connection was lost.
    skip_bytes: u64,
    /// Time at which the connection was lost.
    lost_since: Option<Instant>,
    /// Task that sends input again; aborted when this is dropped.
    resending: Option<AbortHandle>,
    /// Error message of the server. It may concern input that came too late, so it ends the stream only if nothing
    /// follows.
    server_error: Option<ClientError>,
    has_ended: bool,
}

impl ExecOutput {
    pub(super) fn new(source: Source, session: Arc<Session>, target: Target) -> Self {
        Self {
            source,
            session,
            target,
            process: None,
            offset: 0,
            skip_bytes: 0,
            lost_since: None,
            resending: None,
            server_error: None,
            has_ended: false,
        }
    }

    /// Continues after the start message.
    pub(super) fn with_start(mut self, start: Start) -> Self {
        self.begin(start);
        self
    }

    /// Returns the next event, or `None` after [`ExecEvent::Exit`]. Safe to cancel.
    ///
    /// When the connection is lost or the server stops, this reconnects to the command for some minutes: it returns
    /// [`ExecEvent::Disconnected`], then [`ExecEvent::Reconnected`] and the output since.
    ///
    /// # Errors
    ///
    /// If the server reports an error, or the connection broke before the exit code was known and could not be
    /// restored.
    pub async fn next(&mut self) -> Result<Option<ExecEvent>> {
        while !self.has_ended {
            if let Some(since) = self.lost_since {
                return self.reconnect(since).await.map(Some);
            }
            let event = match self.source.next().await {
                Some(Ok(Message::Close(Some(frame)))) if is_final(&frame) => {
                    return Err(self.ended_early(None));
                }
                Some(Ok(Message::Close(_))) | None => self.disconnected(None)?,
                Some(Err(error)) => self.disconnected(Some(connection_error(error)))?,
                Some(Ok(message)) => self.read(message)?,
            };
            if event.is_some() {
                return Ok(event);
            }
        }
        Ok(None)
    }

    fn read(&mut self, message: Message) -> Result<Option<ExecEvent>> {
        let event = match message {
            Message::Binary(bytes) => output(bytes).map(|event| self.skip_returned(event)),
            Message::Text(text) => self.handle(ServerMessage::parse(text.as_str())),
            _ => Ok(None),
        };
        self.has_ended = matches!(event, Err(_) | Ok(Some(ExecEvent::Exit { .. })));
        event
    }

    fn handle(&mut self, message: Result<ServerMessage>) -> Result<Option<ExecEvent>> {
        Ok(match message? {
            ServerMessage::Start(start) => {
                let pid = start.pid;
                self.begin(start);
                Some(ExecEvent::Start { pid })
            }
            ServerMessage::Exit { exit_code } => Some(ExecEvent::Exit { exit_code }),
            ServerMessage::Error(server_error) => {
                self.server_error = Some(server_error);
                None
            }
            ServerMessage::Other => None,
        })
    }

    fn begin(&mut self, start: Start) {
        self.offset = start.output_offset.unwrap_or(0);
        self.process = start.process.is_some().then_some(start);
    }

    /// Counts output and skips what was returned before.
    fn skip_returned(&mut self, event: ExecEvent) -> Option<ExecEvent> {
        let (ExecEvent::Stdout(mut bytes) | ExecEvent::Stderr(mut bytes)) = event.clone() else {
            return Some(event);
        };
        let cut = usize::try_from(self.skip_bytes)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        bytes.advance(cut);
        self.skip_bytes -= cut as u64;
        self.offset += bytes.len() as u64;
        if bytes.is_empty() {
            return None;
        }
        Some(match event {
            ExecEvent::Stderr(_) => ExecEvent::Stderr(bytes),
            _ => ExecEvent::Stdout(bytes),
        })
    }

    /// Records that the connection is lost. Fails if the server cannot reconnect to the command.
    fn disconnected(&mut self, failure: Option<ClientError>) -> Result<Option<ExecEvent>> {
        if self.process.is_none() {
            return Err(self.ended_early(failure));
        }
        // The error was that the server stops, or concerned input that is sent again.
        self.server_error = None;
        self.lost_since = Some(Instant::now());
        Ok(Some(ExecEvent::Disconnected))
    }

    async fn reconnect(&mut self, since: Instant) -> Result<ExecEvent> {
        match self.reconnect_until(since).await {
            Ok(event) => {
                self.lost_since = None;
                Ok(event)
            }
            Err(error) => {
                self.has_ended = true;
                self.session.close();
                Err(error)
            }
        }
    }

    async fn reconnect_until(&mut self, since: Instant) -> Result<ExecEvent> {
        let Some(process) = &self.process else {
            return Err(self.ended_early(None));
        };
        let attached = self.target.reconnect(process, self.offset, since).await?;
        let resumed = self
            .session
            .resume(attached.sink, attached.start.input_offset);
        let Some(resumed) = resumed.await else {
            return Err(self.target.input_lost(process.pid));
        };
        // Runs concurrently: a command may read its input only after its output was read.
        let resending = tokio::spawn(resumed.send());
        if let Some(previous) = self.resending.replace(resending.abort_handle()) {
            previous.abort();
        }
        let begins = attached.start.output_offset.unwrap_or(self.offset);
        let missing = begins.saturating_sub(self.offset);
        self.skip_bytes = self.offset.saturating_sub(begins);
        self.offset += missing;
        self.source = attached.source;
        Ok(ExecEvent::Reconnected { missing })
    }

    /// Error for a stream that ended before the command.
    fn ended_early(&mut self, failure: Option<ClientError>) -> ClientError {
        self.has_ended = true;
        self.session.close();
        let server_error = self.server_error.take().or(failure);
        server_error.unwrap_or_else(|| ClientError::Protocol {
            operation: OPERATION,
            problem: "the connection was closed before the command's end was known".to_owned(),
        })
    }
}

impl Drop for ExecOutput {
    fn drop(&mut self) {
        if let Some(resending) = &self.resending {
            resending.abort();
        }
    }
}

/// Whether the server closed the connection for good. A server that stops closes with `Away`, and the command keeps
/// running.
fn is_final(frame: &CloseFrame) -> bool {
    !matches!(frame.code, CloseCode::Away | CloseCode::Restart)
}

fn output(mut bytes: Bytes) -> Result<ExecEvent> {
    if bytes.is_empty() {
        return Err(malformed("an empty message".to_owned()));
    }
    match bytes.get_u8() {
        1 => Ok(ExecEvent::Stdout(bytes)),
        2 => Ok(ExecEvent::Stderr(bytes)),
        channel => Err(malformed(format!("output of channel {channel}"))),
    }
}

fn malformed(problem: String) -> ClientError {
    ClientError::Protocol {
        operation: OPERATION,
        problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_read_and_malformed_messages_are_refused() {
        let out = output(Bytes::from_static(b"\x01hi")).unwrap();
        assert_eq!(out, ExecEvent::Stdout(Bytes::from_static(b"hi")));
        assert!(output(Bytes::new()).is_err() && output(Bytes::from_static(b"\x07x")).is_err());
    }
}
