//! Text messages of commands and terminals over WebSocket.

use std::collections::BTreeMap;

use sandyard_agent_client::wire::process::{PtySize, Signal};
use sandyard_service::{RunRequest, ServiceError, ServiceResult};
use serde::Deserialize;
use serde_json::json;

use super::child::Child;
use crate::model::command::{CommandText, run_request};

/// Largest number of columns and of rows of a terminal.
const MAX_SIDE: u16 = 4096;

/// Columns and rows of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Size {
    pub(super) cols: u16,
    pub(super) rows: u16,
}

impl Size {
    /// Checks columns and rows.
    pub(super) fn checked(self) -> ServiceResult<Self> {
        let range = 1..=MAX_SIDE;
        if range.contains(&self.cols) && range.contains(&self.rows) {
            return Ok(self);
        }
        let text = format!("columns and rows must be 1 to {MAX_SIDE}");
        Err(ServiceError::invalid("tty", text))
    }

    pub(super) fn to_wire(self) -> PtySize {
        PtySize {
            cols: self.cols.into(),
            rows: self.rows.into(),
        }
    }
}

/// The first message of `exec`: the command to run.
#[derive(Deserialize)]
pub(super) struct ExecRequest {
    command: Option<CommandText>,
    argv: Option<Vec<String>>,
    tty: Option<Size>,
    cwd: Option<String>,
    env: Option<BTreeMap<String, String>>,
    user: Option<String>,
    timeout: Option<f64>,
}

impl ExecRequest {
    pub(super) fn into_request(self) -> ServiceResult<RunRequest> {
        let command = match (self.command, self.argv) {
            (Some(command), None) => command,
            (None, Some(argv)) => CommandText::Argv(argv),
            _ => {
                return Err(ServiceError::invalid(
                    "command",
                    "send either `command` or `argv`",
                ));
            }
        };
        let command = command.into_command()?;
        let mut request = run_request(command, self.cwd, self.env, self.user, self.timeout)?;
        request.has_stdin = true;
        if let Some(size) = self.tty {
            let size = size.checked()?;
            request.terminal = Some((size.cols, size.rows));
            set_term(&mut request);
        }
        Ok(request)
    }
}

/// Sets `TERM`, unless the caller has set it.
pub(super) fn set_term(request: &mut RunRequest) {
    request
        .env
        .entry("TERM".to_owned())
        .or_insert_with(|| "xterm-256color".to_owned());
}

/// Any later text message of the client.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Control {
    /// The terminal has a new size.
    Resize {
        #[serde(flatten)]
        size: Size,
    },
    /// A signal for the command.
    Signal { signal: SignalName },
    /// The input has ended.
    Eof,
}

/// A signal by name or number.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum SignalName {
    Number(i32),
    Name(String),
}

/// Names of common signals, with their numbers on Linux (signal(7)).
const SIGNALS: [(&str, i32); 12] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ABRT", 6),
    ("KILL", 9),
    ("USR1", 10),
    ("USR2", 12),
    ("ALRM", 14),
    ("TERM", 15),
    ("CONT", 18),
    ("STOP", 19),
    ("WINCH", 28),
];

impl SignalName {
    /// Reads `SIGINT`, `int` or `2`.
    pub(super) fn to_wire(&self) -> ServiceResult<Signal> {
        let unknown = || {
            ServiceError::invalid(
                "signal",
                "unknown signal: send for example SIGINT, SIGTERM or 9",
            )
        };
        match self {
            Self::Number(number @ 1..=64) => Ok(Signal(*number)),
            Self::Number(_) => Err(unknown()),
            Self::Name(name) => {
                if let Ok(number) = name.parse() {
                    return Self::Number(number).to_wire();
                }
                let upper = name.to_ascii_uppercase();
                let short = upper.strip_prefix("SIG").unwrap_or(&upper);
                SIGNALS
                    .iter()
                    .find(|(known, _)| *known == short)
                    .map(|&(_, number)| Signal(number))
                    .ok_or_else(unknown)
            }
        }
    }
}

/// Text messages of the server.
pub(super) mod messages {
    use super::{Child, ServiceError, json};

    /// The command runs. The message holds what a client needs to continue with `attach` after its connection broke.
    pub(in crate::stream) fn start(child: &Child) -> String {
        let identity = child.identity();
        json!({
            "type": "start",
            "pid": child.pid(),
            "process": identity.unique_id,
            "tty": identity.has_terminal,
            "cwd": identity.cwd,
            "output_offset": child.output_offset(),
            "input_offset": identity.input_offset,
        })
        .to_string()
    }

    /// The command has ended.
    pub(in crate::stream) fn exit(exit_code: i32) -> String {
        json!({"type": "exit", "exit_code": exit_code}).to_string()
    }

    /// Something failed.
    pub(in crate::stream) fn error(error: &ServiceError) -> String {
        json!({"type": "error", "code": error.kind.code(), "detail": error.message, "hint": error.hint})
            .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_messages_are_read() {
        let read = |text| serde_json::from_str::<Control>(text).unwrap();
        assert_eq!(
            read(r#"{"type":"resize","cols":80,"rows":24}"#),
            Control::Resize {
                size: Size { cols: 80, rows: 24 }
            }
        );
        assert_eq!(read(r#"{"type":"eof"}"#), Control::Eof);
        for (text, number) in [
            (r#""SIGINT""#, 2),
            (r#""term""#, 15),
            ("9", 9),
            (r#""10""#, 10),
        ] {
            let name: SignalName = serde_json::from_str(text).unwrap();
            assert_eq!(name.to_wire().unwrap(), Signal(number), "{text}");
        }
        for text in [r#""SIGNOPE""#, "0", "65", "-1"] {
            let name: SignalName = serde_json::from_str(text).unwrap();
            assert!(name.to_wire().is_err(), "{text}");
        }
    }

    #[test]
    fn a_first_message_has_either_command_or_argv() {
        let read = |text| {
            serde_json::from_str::<ExecRequest>(text)
                .unwrap()
                .into_request()
        };
        assert!(read(r#"{"command":"ls"}"#).is_ok());
        assert!(read(r#"{"argv":["ls","-l"],"tty":{"cols":80,"rows":24}}"#).is_ok());
        assert!(
            read(r#"{"argv":["ls"],"tty":null}"#)
                .unwrap()
                .terminal
                .is_none()
        );
        for text in [
            "{}",
            r#"{"command":"a","argv":["b"]}"#,
            r#"{"argv":[]}"#,
            r#"{"command":"a","tty":{"cols":0,"rows":24}}"#,
            r#"{"command":"a","timeout":0}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
