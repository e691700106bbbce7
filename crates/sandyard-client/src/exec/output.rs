//! What comes from a running command.

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
use super::shared::Shared;
use super::{OPERATION, Source, broken};
use crate::Result;
use crate::error::ClientError;

/// Something a command did, or its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExecEvent {
    /// It runs.
    Start {
        /// Its process id inside.
        pid: u32,
    },
    /// It wrote to its standard output, or to its terminal.
    Stdout(Bytes),
    /// It wrote to its standard error.
    Stderr(Bytes),
    /// The connection was lost. The command goes on, and the next call reconnects to it.
    Disconnected,
    /// The connection is back; output goes on where it was cut.
    Reconnected {
        /// Bytes of output that are missing, because the sandbox no longer kept them.
        missing: u64,
    },
    /// It ended; nothing comes after this.
    Exit {
        /// How; 128 + n after signal n.
        exit_code: i32,
    },
}

/// The way out of a running command.
#[derive(Debug)]
pub struct ExecOutput {
    source: Source,
    shared: Arc<Shared>,
    target: Target,
    /// Known once it has started, if its server can continue it.
    process: Option<Start>,
    /// How many bytes the command has written as far as they were handed out here.
    offset: u64,
    /// Bytes to leave out, which were handed out before the connection was lost.
    repeated: u64,
    /// Since when there is no connection.
    lost: Option<Instant>,
    /// Sends input again; ends with this.
    resending: Option<AbortHandle>,
    /// What the server complained about. It may be about input that came too late: only if nothing else follows is it
    /// the end of the command.
    complaint: Option<ClientError>,
    is_over: bool,
}

impl ExecOutput {
    pub(super) fn new(source: Source, shared: Arc<Shared>, target: Target) -> Self {
        Self {
            source,
            shared,
            target,
            process: None,
            offset: 0,
            repeated: 0,
            lost: None,
            resending: None,
            complaint: None,
            is_over: false,
        }
    }

    /// One whose first message was read already.
    pub(super) fn started(mut self, start: Start) -> Self {
        self.begin(start);
        self
    }

    /// The next thing that happened; none after [`ExecEvent::Exit`]. Loses nothing when cancelled.
    ///
    /// When the connection is lost, or the server ends, this reconnects to the command for some minutes:
    /// [`ExecEvent::Disconnected`], then [`ExecEvent::Reconnected`] and what the command did meanwhile.
    ///
    /// # Errors
    ///
    /// What the server says went wrong; or that the connection broke before the command's end was known, and could not be restored.
    pub async fn next(&mut self) -> Result<Option<ExecEvent>> {
        while !self.is_over {
            if let Some(since) = self.lost {
                return self.reconnect(since).await.map(Some);
            }
            let event = match self.source.next().await {
                Some(Ok(Message::Close(Some(frame)))) if is_final(&frame) => {
                    return Err(self.cut_off(None));
                }
                Some(Ok(Message::Close(_))) | None => self.disconnected(None)?,
                Some(Err(error)) => self.disconnected(Some(broken(error)))?,
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
            Message::Binary(bytes) => output(bytes).map(|event| self.new_part(event)),
            Message::Text(text) => self.take(ServerMessage::parse(text.as_str())),
            _ => Ok(None),
        };
        self.is_over = matches!(event, Err(_) | Ok(Some(ExecEvent::Exit { .. })));
        event
    }

    fn take(&mut self, message: Result<ServerMessage>) -> Result<Option<ExecEvent>> {
        Ok(match message? {
            ServerMessage::Start(start) => {
                let pid = start.pid;
                self.begin(start);
                Some(ExecEvent::Start { pid })
            }
            ServerMessage::Exit { exit_code } => Some(ExecEvent::Exit { exit_code }),
            ServerMessage::Error(complaint) => {
                self.complaint = Some(complaint);
                None
            }
            ServerMessage::Other => None,
        })
    }

    fn begin(&mut self, start: Start) {
        self.offset = start.output_offset.unwrap_or(0);
        self.process = start.process.is_some().then_some(start);
    }

    /// Counts output, and leaves out what was handed out before.
    fn new_part(&mut self, event: ExecEvent) -> Option<ExecEvent> {
        let (ExecEvent::Stdout(mut bytes) | ExecEvent::Stderr(mut bytes)) = event.clone() else {
            return Some(event);
        };
        let cut = usize::try_from(self.repeated)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        bytes.advance(cut);
        self.repeated -= cut as u64;
        self.offset += bytes.len() as u64;
        if bytes.is_empty() {
            return None;
        }
        Some(match event {
            ExecEvent::Stderr(_) => ExecEvent::Stderr(bytes),
            _ => ExecEvent::Stdout(bytes),
        })
    }

    /// Notes that the connection is lost; an error if nobody knows how to go on.
    fn disconnected(&mut self, failure: Option<ClientError>) -> Result<Option<ExecEvent>> {
        if self.process.is_none() {
            return Err(self.cut_off(failure));
        }
        // That the server ends, or something about input that is sent again.
        self.complaint = None;
        self.lost = Some(Instant::now());
        Ok(Some(ExecEvent::Disconnected))
    }

    async fn reconnect(&mut self, since: Instant) -> Result<ExecEvent> {
        match self.reconnect_until(since).await {
            Ok(event) => {
                self.lost = None;
                Ok(event)
            }
            Err(error) => {
                self.is_over = true;
                self.shared.close();
                Err(error)
            }
        }
    }

    async fn reconnect_until(&mut self, since: Instant) -> Result<ExecEvent> {
        let Some(process) = &self.process else {
            return Err(self.cut_off(None));
        };
        let again = self.target.reconnect(process, self.offset, since).await?;
        let resumed = self.shared.resume(again.sink, again.start.input_offset);
        let Some(resumed) = resumed.await else {
            return Err(self.target.input_lost(process.pid));
        };
        // Beside the output: a command may only read on when its output is read.
        let resending = tokio::spawn(resumed.send());
        if let Some(before) = self.resending.replace(resending.abort_handle()) {
            before.abort();
        }
        let begins = again.start.output_offset.unwrap_or(self.offset);
        let missing = begins.saturating_sub(self.offset);
        self.repeated = self.offset.saturating_sub(begins);
        self.offset += missing;
        self.source = again.source;
        Ok(ExecEvent::Reconnected { missing })
    }

    /// Why the stream ended without the command's end.
    fn cut_off(&mut self, failure: Option<ClientError>) -> ClientError {
        self.is_over = true;
        self.shared.close();
        let complaint = self.complaint.take().or(failure);
        complaint.unwrap_or_else(|| ClientError::Protocol {
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

/// Whether the server closed because there is nothing more to say. One that ends closes with `Away`, and the command goes on.
fn is_final(frame: &CloseFrame) -> bool {
    !matches!(frame.code, CloseCode::Away | CloseCode::Restart)
}

fn output(mut bytes: Bytes) -> Result<ExecEvent> {
    if bytes.is_empty() {
        return Err(nonsense("an empty message".to_owned()));
    }
    match bytes.get_u8() {
        1 => Ok(ExecEvent::Stdout(bytes)),
        2 => Ok(ExecEvent::Stderr(bytes)),
        channel => Err(nonsense(format!("output of channel {channel}"))),
    }
}

fn nonsense(problem: String) -> ClientError {
    ClientError::Protocol {
        operation: OPERATION,
        problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_read_and_nonsense_is_not() {
        let out = output(Bytes::from_static(b"\x01hi")).unwrap();
        assert_eq!(out, ExecEvent::Stdout(Bytes::from_static(b"hi")));
        assert!(output(Bytes::new()).is_err() && output(Bytes::from_static(b"\x07x")).is_err());
    }
}
