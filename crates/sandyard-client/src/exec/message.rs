//! Text messages of the server.

use serde::Deserialize;

use super::OPERATION;
use crate::Result;
use crate::error::{ApiError, ClientError};

/// Parsed text message of the server.
#[derive(Debug)]
pub(super) enum ServerMessage {
    Start(Start),
    Exit {
        exit_code: i32,
    },
    Error(ClientError),
    /// Message of a later version of the server.
    Other,
}

/// First message: the command runs, and how to reconnect to it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Start {
    pub(super) pid: u32,
    /// Unique ID of the process. `None`: the server cannot reconnect to it.
    pub(super) process: Option<String>,
    /// Whether the process has a terminal.
    pub(super) tty: Option<bool>,
    /// Offset of the first byte of output that follows.
    pub(super) output_offset: Option<u64>,
    /// Number of bytes of input that the command received before this connection.
    pub(super) input_offset: Option<u64>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum RawMessage {
    Start(Start),
    Exit {
        exit_code: i32,
    },
    Error {},
    #[serde(other)]
    Other,
}

impl ServerMessage {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let message = serde_json::from_str(text).map_err(|error| ClientError::Protocol {
            operation: OPERATION,
            problem: error.to_string(),
        })?;
        Ok(match message {
            RawMessage::Start(start) => Self::Start(start),
            RawMessage::Exit { exit_code } => Self::Exit { exit_code },
            RawMessage::Error {} => {
                let error = ApiError::in_stream(text.as_bytes());
                Self::Error(ClientError::Api(Box::new(error)))
            }
            RawMessage::Other => Self::Other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_older_and_newer_servers_are_read() {
        let parse = |text| ServerMessage::parse(text).unwrap();
        assert!(matches!(
            parse(r#"{"type":"start","pid":7}"#),
            ServerMessage::Start(Start {
                pid: 7,
                process: None,
                ..
            })
        ));
        assert!(matches!(
            parse(
                r#"{"type":"start","pid":7,"process":"7-a","tty":true,"output_offset":5,"input_offset":null}"#
            ),
            ServerMessage::Start(Start {
                output_offset: Some(5),
                tty: Some(true),
                ..
            })
        ));
        assert!(matches!(
            parse(r#"{"type":"exit","exit_code":137,"more":1}"#),
            ServerMessage::Exit { exit_code: 137 }
        ));
        assert!(matches!(parse(r#"{"type":"later"}"#), ServerMessage::Other));
        let ServerMessage::Error(error) =
            parse(r#"{"type":"error","code":"timed_out","detail":"too slow"}"#)
        else {
            panic!("it is an error");
        };
        assert_eq!(
            (error.code(), error.to_string().as_str()),
            (Some("timed_out"), "too slow")
        );
        assert!(ServerMessage::parse("[]").is_err());
    }
}
