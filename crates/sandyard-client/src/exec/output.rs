//! What comes from a running command.

use bytes::{Buf as _, Bytes};
use futures_util::StreamExt;
use serde::Deserialize;
use tokio_tungstenite::tungstenite::Message;

use super::{OPERATION, Source, broken};
use crate::Result;
use crate::error::{ApiError, ClientError};

/// Something a command did.
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
    /// It ended; nothing comes after this.
    Exit {
        /// How; 128 + n after signal n.
        exit_code: i32,
    },
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Word {
    Start {
        pid: u32,
    },
    Exit {
        exit_code: i32,
    },
    Error {},
    #[serde(other)]
    Other,
}

/// The way out of a running command.
#[derive(Debug)]
pub struct ExecOutput {
    source: Source,
    /// What the server complained about. It may be about input that came too late: only if nothing else follows is it
    /// the end of the command.
    complaint: Option<ClientError>,
    is_over: bool,
}

impl ExecOutput {
    pub(super) fn new(source: Source) -> Self {
        Self {
            source,
            complaint: None,
            is_over: false,
        }
    }

    /// The next thing that happened; none after [`ExecEvent::Exit`].
    ///
    /// # Errors
    ///
    /// What the server says went wrong; or that the connection broke before the command's end was known.
    pub async fn next(&mut self) -> Result<Option<ExecEvent>> {
        while !self.is_over {
            let message = match self.source.next().await {
                Some(Ok(Message::Close(_))) | None => return Err(self.cut_off(None)),
                Some(Err(error)) => return Err(self.cut_off(Some(broken(error)))),
                Some(Ok(message)) => message,
            };
            if let Some(event) = self.read(message)? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    fn read(&mut self, message: Message) -> Result<Option<ExecEvent>> {
        let event = match message {
            Message::Binary(bytes) => output(bytes).map(Some),
            Message::Text(text) => match word(text.as_str()) {
                Err(complaint @ ClientError::Api(_)) => {
                    self.complaint = Some(complaint);
                    Ok(None)
                }
                other => other,
            },
            _ => Ok(None),
        };
        self.is_over = matches!(event, Err(_) | Ok(Some(ExecEvent::Exit { .. })));
        event
    }

    /// Why the stream ended without the command's end.
    fn cut_off(&mut self, failure: Option<ClientError>) -> ClientError {
        self.is_over = true;
        let complaint = self.complaint.take().or(failure);
        complaint.unwrap_or_else(|| ClientError::Protocol {
            operation: OPERATION,
            problem: "the connection was closed before the command's end was known".to_owned(),
        })
    }
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

fn word(text: &str) -> Result<Option<ExecEvent>> {
    match serde_json::from_str(text).map_err(|error| nonsense(error.to_string()))? {
        Word::Start { pid } => Ok(Some(ExecEvent::Start { pid })),
        Word::Exit { exit_code } => Ok(Some(ExecEvent::Exit { exit_code })),
        Word::Error {} => {
            let refusal = ApiError::in_stream(text.as_bytes());
            Err(ClientError::Api(Box::new(refusal)))
        }
        Word::Other => Ok(None),
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
    fn messages_are_read_and_nonsense_is_not() {
        let out = output(Bytes::from_static(b"\x01hi")).unwrap();
        assert_eq!(out, ExecEvent::Stdout(Bytes::from_static(b"hi")));
        assert!(output(Bytes::new()).is_err() && output(Bytes::from_static(b"\x07x")).is_err());
        assert_eq!(
            word(r#"{"type":"exit","exit_code":137,"more":1}"#).unwrap(),
            Some(ExecEvent::Exit { exit_code: 137 })
        );
        assert_eq!(word(r#"{"type":"later"}"#).unwrap(), None);
        let error = word(r#"{"type":"error","code":"timed_out","detail":"too slow"}"#).unwrap_err();
        assert_eq!(
            (error.code(), error.to_string().as_str()),
            (Some("timed_out"), "too slow")
        );
        assert!(word("[]").is_err());
    }
}
