//! The records of a log file.
//!
//! ```text
//!  magic u8 · kind u8 · length u32 · checksum u32 · payload
//! ```
//!
//! Numbers are little-endian. A record that was written in part, or that a power failure kept from the disk, has a wrong checksum. All
//! records before it are complete.

use serde::{Deserialize, Serialize};

use crate::request::LogSource;

const MAGIC: u8 = 0xc5;
const HEADER: usize = 10;
const OUTPUT: u8 = 1;
const COMMAND_OPENED: u8 = 2;
const COMMAND_CLOSED: u8 = 3;

/// A command whose end is not recorded, and how much of its output is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OpenCommand {
    /// The id under which its agent keeps it.
    pub(crate) id: String,
    pub(crate) pid: u32,
    /// The name of the user who started it.
    pub(crate) actor: String,
    pub(crate) began_ms: i64,
    /// Whether its output goes to the log.
    pub(crate) is_logged: bool,
    /// For standard output and standard error: the position in the whole output up to which that stream is in the log.
    pub(crate) recorded: [u64; 2],
    /// The position from which output has to be read again: the start of the oldest line that is not in the log.
    pub(crate) resume: u64,
}

/// Whole lines of one source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    /// The number of the first line, set by the writer.
    pub(crate) seq: u64,
    pub(crate) at_ms: i64,
    /// The source, by [`source_code`].
    pub(crate) source: u8,
    /// The id of the process that wrote the lines; 0 if no command did.
    pub(crate) pid: u32,
    /// The id of the command that wrote the lines; empty if no command did.
    pub(crate) command: String,
    /// The position in the command's output after the last line.
    pub(crate) end: u64,
    /// See [`OpenCommand::resume`].
    pub(crate) resume: u64,
    /// Number of lines.
    pub(crate) count: u32,
    /// The lines, each with its newline.
    pub(crate) text: Vec<u8>,
}

/// A record of a log file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Lines(Lines),
    /// A command was started. Also at the beginning of every file, for each running command.
    CommandOpened(OpenCommand),
    /// The end of a command is in the history.
    CommandClosed(String),
}

pub(crate) fn source_code(source: LogSource) -> u8 {
    match source {
        LogSource::Stdout => 0,
        LogSource::Stderr => 1,
        LogSource::Event => 2,
        LogSource::Gateway => 3,
        LogSource::Notice => 4,
    }
}

pub(crate) fn source_of(code: u8) -> LogSource {
    match code {
        0 => LogSource::Stdout,
        1 => LogSource::Stderr,
        2 => LogSource::Event,
        3 => LogSource::Gateway,
        _ => LogSource::Notice,
    }
}

impl Record {
    /// Appends the record to a buffer.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let at = out.len();
        out.extend_from_slice(&[0; HEADER]);
        let kind = match self {
            Self::Lines(lines) => {
                lines.encode(out);
                OUTPUT
            }
            Self::CommandOpened(command) => {
                // A plain structure of numbers and texts always has a JSON form.
                out.extend(serde_json::to_vec(command).unwrap_or_default());
                COMMAND_OPENED
            }
            Self::CommandClosed(id) => {
                out.extend_from_slice(id.as_bytes());
                COMMAND_CLOSED
            }
        };
        let length = (out.len() - at - HEADER) as u32;
        let checksum = checksum(kind, &out[at + HEADER..]);
        out[at] = MAGIC;
        out[at + 1] = kind;
        out[at + 2..at + 6].copy_from_slice(&length.to_le_bytes());
        out[at + 6..at + 10].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Reads the record at the beginning of `bytes`. Returns it and its length; none if there is no complete record.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(Self, usize)> {
        let header = bytes.get(..HEADER)?;
        let length = u32::from_le_bytes(header[2..6].try_into().ok()?) as usize;
        let payload = bytes.get(HEADER..HEADER.checked_add(length)?)?;
        let expected = u32::from_le_bytes(header[6..10].try_into().ok()?);
        if header[0] != MAGIC || checksum(header[1], payload) != expected {
            return None;
        }
        let record = match header[1] {
            OUTPUT => Self::Lines(Lines::decode(payload)?),
            COMMAND_OPENED => Self::CommandOpened(serde_json::from_slice(payload).ok()?),
            COMMAND_CLOSED => Self::CommandClosed(String::from_utf8(payload.to_vec()).ok()?),
            _ => return None,
        };
        Some((record, HEADER + length))
    }
}

impl Lines {
    fn encode(&self, out: &mut Vec<u8>) {
        let command = &self.command.as_bytes()[..self.command.len().min(255)];
        out.extend_from_slice(&self.seq.to_le_bytes());
        out.extend_from_slice(&self.at_ms.to_le_bytes());
        out.extend_from_slice(&self.end.to_le_bytes());
        out.extend_from_slice(&self.resume.to_le_bytes());
        out.extend_from_slice(&self.pid.to_le_bytes());
        out.extend_from_slice(&self.count.to_le_bytes());
        out.push(self.source);
        out.push(command.len() as u8);
        out.extend_from_slice(command);
        out.extend_from_slice(&self.text);
    }

    fn decode(payload: &[u8]) -> Option<Self> {
        let eight = |at: usize| -> Option<[u8; 8]> { payload.get(at..at + 8)?.try_into().ok() };
        let four = |at: usize| -> Option<[u8; 4]> { payload.get(at..at + 4)?.try_into().ok() };
        let text = 42 + usize::from(*payload.get(41)?);
        Some(Self {
            seq: u64::from_le_bytes(eight(0)?),
            at_ms: i64::from_le_bytes(eight(8)?),
            end: u64::from_le_bytes(eight(16)?),
            resume: u64::from_le_bytes(eight(24)?),
            pid: u32::from_le_bytes(four(32)?),
            count: u32::from_le_bytes(four(36)?),
            source: *payload.get(40)?,
            command: String::from_utf8(payload.get(42..text)?.to_vec()).ok()?,
            text: payload.get(text..)?.to_vec(),
        })
    }
}

fn checksum(kind: u8, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&[kind]);
    hasher.update(payload);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_back_and_damaged_ones_are_detected() {
        let records = [
            Record::Lines(Lines {
                seq: 7,
                at_ms: -1,
                source: 1,
                pid: 42,
                command: "node/1".to_owned(),
                end: 10,
                resume: 3,
                count: 2,
                text: b"a\nb\n".to_vec(),
            }),
            Record::CommandOpened(OpenCommand {
                id: "node/1".to_owned(),
                recorded: [1, 2],
                ..OpenCommand::default()
            }),
            Record::CommandClosed("node/1".to_owned()),
        ];
        for record in records {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            assert_eq!(Record::decode(&bytes), Some((record, bytes.len())));
            for cut in 0..bytes.len() {
                assert_eq!(Record::decode(&bytes[..cut]), None);
            }
            for at in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[at] ^= 0x10;
                assert_eq!(Record::decode(&damaged), None, "byte {at}");
            }
        }
    }
}
