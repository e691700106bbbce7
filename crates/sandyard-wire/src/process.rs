//! Messages of `process.Process`: what is asked of commands.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::event::ProcessEvent;
use crate::json::{self, NameOrNumber, is_default, null_default};

/// What to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessConfig {
    /// The program, looked up in `PATH`.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_default")]
    pub cmd: String,
    /// Its arguments, without the program's own name.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_default")]
    pub args: Vec<String>,
    /// Variables on top of the login environment and the sandbox's own.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_default")]
    pub envs: BTreeMap<String, String>,
    /// Working directory; none is the user's home or the sandbox's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

/// Size of a terminal in characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PtySize {
    /// Columns.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "json::int")]
    pub cols: u32,
    /// Rows.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "json::int")]
    pub rows: u32,
}

/// A terminal to run in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Pty {
    /// Its size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<PtySize>,
}

/// Asks to start a command; answered by a stream of [`EventMessage`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StartRequest {
    /// What to run.
    #[serde(deserialize_with = "null_default")]
    pub process: ProcessConfig,
    /// Present: run in a terminal instead of on pipes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pty: Option<Pty>,
    /// A name of the caller's to find the process by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Whether standard input is a pipe that can be written; absent means yes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<bool>,
}

/// Names a running process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ProcessSelector {
    /// By process id as seen inside the sandbox.
    Pid(u32),
    /// By the tag given at start.
    Tag(String),
}

impl<'de> Deserialize<'de> for ProcessSelector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Raw {
            pid: Option<Pid>,
            tag: Option<String>,
        }
        #[derive(Deserialize)]
        struct Pid(#[serde(deserialize_with = "json::int")] u32);

        let Raw { pid, tag } = Raw::deserialize(deserializer)?;
        match (pid, tag) {
            (Some(Pid(pid)), None) => Ok(Self::Pid(pid)),
            (None, Some(tag)) => Ok(Self::Tag(tag)),
            _ => Err(de::Error::custom(
                "a process selector names either a pid or a tag",
            )),
        }
    }
}

/// Asks to follow a running process; answered like [`StartRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectRequest {
    /// Which process.
    pub process: ProcessSelector,
}

/// One message of the streams answering [`StartRequest`] and [`ConnectRequest`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventMessage {
    /// What happened.
    #[serde(deserialize_with = "null_default")]
    pub event: ProcessEvent,
}

/// Asks for the running processes.
pub type ListRequest = json::Empty;

/// One running process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessInfo {
    /// What it was started as.
    #[serde(deserialize_with = "null_default")]
    pub config: ProcessConfig,
    /// Its process id inside the sandbox.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "json::int")]
    pub pid: u32,
    /// The tag given at start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// The running processes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListResponse {
    /// In order of start.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "json::list")]
    pub processes: Vec<ProcessInfo>,
}

/// Changes a process' terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateRequest {
    /// Which process.
    pub process: ProcessSelector,
    /// Its terminal's new state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pty: Option<Pty>,
}

/// Bytes for a process, and the way they go in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ProcessInput {
    /// Into the pipe on standard input.
    Stdin(#[serde(with = "json::base64_bytes")] Bytes),
    /// Into the terminal.
    Pty(#[serde(with = "json::base64_bytes")] Bytes),
}

impl<'de> Deserialize<'de> for ProcessInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Raw {
            stdin: Option<Base64>,
            pty: Option<Base64>,
        }
        #[derive(Deserialize)]
        struct Base64(#[serde(with = "json::base64_bytes")] Bytes);

        let Raw { stdin, pty } = Raw::deserialize(deserializer)?;
        match (stdin, pty) {
            (Some(Base64(bytes)), None) => Ok(Self::Stdin(bytes)),
            (None, Some(Base64(bytes))) => Ok(Self::Pty(bytes)),
            _ => Err(de::Error::custom(
                "process input goes either to stdin or to pty",
            )),
        }
    }
}

/// Writes to a process once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendInputRequest {
    /// Which process.
    pub process: ProcessSelector,
    /// What to write.
    pub input: ProcessInput,
}

/// One message of a stream that writes to a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StreamInputRequest {
    /// First: which process.
    Start {
        /// Which process.
        process: ProcessSelector,
    },
    /// Then: what to write.
    Data {
        /// What to write.
        input: ProcessInput,
    },
    /// Nothing; keeps the connection from looking dead.
    Keepalive {},
}

impl<'de> Deserialize<'de> for StreamInputRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Raw {
            start: Option<ConnectRequest>,
            data: Option<Data>,
        }
        #[derive(Deserialize)]
        struct Data {
            input: ProcessInput,
        }

        let Raw { start, data } = Raw::deserialize(deserializer)?;
        match (start, data) {
            (Some(ConnectRequest { process }), None) => Ok(Self::Start { process }),
            (None, Some(Data { input })) => Ok(Self::Data { input }),
            (None, None) => Ok(Self::Keepalive {}),
            (Some(_), Some(_)) => Err(de::Error::custom(
                "an input message is either a start or data",
            )),
        }
    }
}

/// Sends a signal to a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SendSignalRequest {
    /// Which process.
    pub process: ProcessSelector,
    /// Which signal.
    #[serde(
        default,
        skip_serializing_if = "is_default",
        deserialize_with = "null_default"
    )]
    pub signal: Signal,
}

/// Closes a process' standard input, so that it reads the end of file.
pub type CloseStdinRequest = ConnectRequest;

/// A signal by its Linux number.
///
/// The protocol names only `SIGTERM` and `SIGKILL`; others travel as plain numbers, which protobuf's JSON allows for any
/// enum. Zero is "unspecified".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Signal(pub i32);

impl Signal {
    /// Ask to end.
    pub const TERM: Self = Self(15);
    /// End now.
    pub const KILL: Self = Self(9);
    /// Interrupt, as from a terminal's Ctrl-C.
    pub const INT: Self = Self(2);
    /// Hang up, as when a terminal goes away.
    pub const HUP: Self = Self(1);
}

impl Serialize for Signal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self(0) => serializer.serialize_str("SIGNAL_UNSPECIFIED"),
            Self::TERM => serializer.serialize_str("SIGNAL_SIGTERM"),
            Self::KILL => serializer.serialize_str("SIGNAL_SIGKILL"),
            Self(number) => serializer.serialize_i32(number),
        }
    }
}

impl<'de> Deserialize<'de> for Signal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match NameOrNumber::deserialize(deserializer)? {
            NameOrNumber::Nothing(()) => Ok(Self(0)),
            NameOrNumber::Number(number) => i32::try_from(number)
                .map(Self)
                .map_err(|_| de::Error::custom(format_args!("signal {number} out of range"))),
            NameOrNumber::Name(name) => match name.as_str() {
                "SIGNAL_UNSPECIFIED" => Ok(Self(0)),
                "SIGNAL_SIGTERM" => Ok(Self::TERM),
                "SIGNAL_SIGKILL" => Ok(Self::KILL),
                _ => Err(de::Error::custom(format_args!("unknown signal `{name}`"))),
            },
        }
    }
}
