//! Events of a running command: its start, its output, its end.

use bytes::Bytes;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json::{self, Empty, is_default, null_default};

/// One event of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ProcessEvent {
    /// First of every stream: the process runs, or ran.
    Start {
        /// Its process id inside the sandbox.
        pid: u32,
    },
    /// It wrote something.
    Data(Output),
    /// Last of every stream: it ended.
    End(EndEvent),
    /// A keep-alive without content.
    Keepalive,
    /// An event this version does not know, or none.
    #[default]
    Other,
}

/// Output of a process, with the stream it was written to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Output {
    /// On the pipe of standard output.
    Stdout(#[serde(with = "json::base64_bytes")] Bytes),
    /// On the pipe of standard error.
    Stderr(#[serde(with = "json::base64_bytes")] Bytes),
    /// On its terminal.
    Pty(#[serde(with = "json::base64_bytes")] Bytes),
}

impl Output {
    /// Returns the bytes of either stream.
    pub fn bytes(&self) -> &Bytes {
        match self {
            Self::Stdout(bytes) | Self::Stderr(bytes) | Self::Pty(bytes) => bytes,
        }
    }
}

/// How a process ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EndEvent {
    /// Its exit code; -1 when a signal ended it, which `status` then names.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "json::int")]
    #[serde(alias = "exit_code")]
    pub exit_code: i32,
    /// Whether it exited, rather than being ended by a signal.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_default")]
    pub exited: bool,
    /// The end in words: `exit status 1`, `signal: killed`.
    #[serde(skip_serializing_if = "is_default", deserialize_with = "null_default")]
    pub status: String,
    /// The error message of a command that did not end with code 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl EndEvent {
    /// The end of a process that exited with a code.
    pub fn exited(exit_code: i32) -> Self {
        let text = format!("exit status {exit_code}");
        Self {
            exit_code,
            exited: true,
            error: (exit_code != 0).then(|| text.clone()),
            status: text,
        }
    }

    /// The end of a process that a signal ended.
    pub fn signalled(signal: i32) -> Self {
        let entry = SIGNAL_NAMES.iter().find(|(_, number)| *number == signal);
        let text = match entry {
            Some((name, _)) => format!("signal: {name}"),
            None => format!("signal: signal {signal}"),
        };
        Self {
            // COMPAT(e2b): a process that did not exit has no code, which the daemon writes as this.
            exit_code: -1,
            exited: false,
            error: Some(text.clone()),
            status: text,
        }
    }

    /// The end as a shell's exit code: the command's own, or 128 plus the number of the signal that ended it.
    pub fn shell_code(&self) -> i32 {
        if self.exited {
            return self.exit_code;
        }
        let name = self.status.trim_start_matches("signal: ");
        let entry = SIGNAL_NAMES
            .iter()
            .find(|(entry, _)| name.starts_with(entry));
        let numbered = || name.trim_start_matches("signal ").parse().ok();
        128 + entry
            .map(|(_, number)| *number)
            .or_else(numbered)
            // An unknown signal ended it.
            .unwrap_or(9)
    }
}

/// COMPAT(e2b): the names of signals in Go's standard library, with their numbers on Linux.
const SIGNAL_NAMES: [(&str, i32); 15] = [
    ("hangup", 1),
    ("interrupt", 2),
    ("quit", 3),
    ("illegal instruction", 4),
    ("trace/breakpoint trap", 5),
    ("aborted", 6),
    ("bus error", 7),
    ("floating point exception", 8),
    ("killed", 9),
    ("user defined signal 1", 10),
    ("segmentation fault", 11),
    ("user defined signal 2", 12),
    ("broken pipe", 13),
    ("alarm clock", 14),
    ("terminated", 15),
];

impl Serialize for ProcessEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Start { pid } => map.serialize_entry("start", &StartEvent { pid: *pid })?,
            Self::Data(output) => map.serialize_entry("data", output)?,
            Self::End(end) => map.serialize_entry("end", end)?,
            Self::Keepalive => map.serialize_entry("keepalive", &Empty {})?,
            Self::Other => {}
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ProcessEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match RawEvent::deserialize(deserializer)? {
            RawEvent { end: Some(end), .. } => Self::End(end),
            RawEvent {
                data: Some(data), ..
            } => data.into_output().map_or(Self::Other, Self::Data),
            RawEvent {
                start: Some(start), ..
            } => Self::Start { pid: start.pid },
            RawEvent {
                keepalive: Some(_), ..
            } => Self::Keepalive,
            _ => Self::Other,
        })
    }
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct StartEvent {
    #[serde(skip_serializing_if = "is_default", deserialize_with = "json::int")]
    pid: u32,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawEvent {
    start: Option<StartEvent>,
    data: Option<RawOutput>,
    end: Option<EndEvent>,
    keepalive: Option<Empty>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawOutput {
    stdout: Option<Base64>,
    stderr: Option<Base64>,
    pty: Option<Base64>,
}

#[derive(Deserialize)]
struct Base64(#[serde(with = "json::base64_bytes")] Bytes);

impl RawOutput {
    fn into_output(self) -> Option<Output> {
        let stdout = self.stdout.map(|Base64(bytes)| Output::Stdout(bytes));
        let stderr = self.stderr.map(|Base64(bytes)| Output::Stderr(bytes));
        let pty = self.pty.map(|Base64(bytes)| Output::Pty(bytes));
        stdout.or(stderr).or(pty)
    }
}
