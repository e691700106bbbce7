//! What the engine's client and a worker say to each other.
//!
//! A frame is a length of four bytes, least significant first, and that many bytes. A request is one frame of JSON; its
//! answer is one frame of JSON. After [`Request::ImportTemplate`] the client sends the archive as frames, ended by an empty
//! one, before the answer comes.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use sandyard_core::{Limits, SandboxId};
use sandyard_template::{Change, Template};
use serde::{Deserialize, Serialize};

use crate::error::EngineError;
use crate::mode::Mode;
use crate::spec::{SandboxInfo, SandboxSpec, SandboxStats};
use crate::steps::Fault;

/// Largest frame of a request or of archive data.
pub(crate) const MAX_REQUEST: usize = 4 << 20;
/// Largest frame of an answer: a long list of changes.
pub(crate) const MAX_REPLY: usize = 64 << 20;
/// Counts up when either side could no longer understand the other.
pub(crate) const GENERATION: u32 = 1;

/// What the client can ask.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    /// Who are you?
    Hello,
    /// Make a sandbox.
    Create {
        spec: Box<SandboxSpec>,
        fault: Option<Fault>,
    },
    /// What do you know of it?
    Inspect { id: SandboxId },
    /// What do you know of all of them?
    List,
    /// Freeze it.
    Pause { id: SandboxId },
    /// Thaw it.
    Resume { id: SandboxId },
    /// End its processes, keep its files.
    Stop { id: SandboxId },
    /// Start it again from its files.
    Start { id: SandboxId, fault: Option<Fault> },
    /// Remove it.
    Delete { id: SandboxId },
    /// Keep its files as a template.
    Snapshot { id: SandboxId, name: String },
    /// Make another one from its files.
    Fork {
        id: SandboxId,
        env: Option<BTreeMap<String, String>>,
    },
    /// Which files did it change?
    Diff { id: SandboxId },
    /// What does it use?
    Stats { id: SandboxId },
    /// Which templates are there?
    ListTemplates,
    /// Make a template from an archive.
    ImportTemplate { name: String },
    /// Remove a template.
    RemoveTemplate { name: String },
    /// Keep ready sandboxes of these kinds.
    SetPool { pool: Vec<PoolSpec> },
    /// How many are ready?
    PoolStatus,
    /// Put right whatever crashes have left.
    Sweep,
}

impl Request {
    /// Says whether asking twice does what asking once does.
    pub(crate) fn can_be_repeated(&self) -> bool {
        match self {
            Self::Create { .. }
            | Self::Fork { .. }
            | Self::Snapshot { .. }
            | Self::ImportTemplate { .. } => false,
            Self::Start { fault, .. } => fault.is_none(),
            Self::RemoveTemplate { .. } => false,
            _ => true,
        }
    }
}

/// How many ready sandboxes of one kind to keep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolSpec {
    /// What they start from.
    pub template: String,
    /// Their limits. A create gets one if template and disk size are the same; the other limits are changed on the way.
    #[serde(default)]
    pub limits: Limits,
    /// How many.
    pub count: usize,
}

/// What the worker answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    Hello(Hello),
    Sandbox(Box<SandboxInfo>),
    Sandboxes(Vec<SandboxInfo>),
    Changes(Vec<Change>),
    Stats(SandboxStats),
    Template(Box<Template>),
    Templates(Vec<Template>),
    Count(usize),
    Done,
}

/// Who the launcher is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Version of the program.
    pub version: String,
    /// Generation of this protocol.
    pub generation: u32,
    /// Process id of the launcher.
    pub launcher_pid: i32,
    /// With how much privilege it runs.
    pub mode: Mode,
    /// What this host cannot give any sandbox.
    pub lacks: Vec<String>,
}

/// An answer or why there is none.
pub(crate) type Answer = Result<Reply, EngineError>;

/// Reads one frame; `None` at a clean end.
pub(crate) fn read_frame(stream: &mut impl Read, most: usize) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match stream.read(&mut length)? {
        0 => return Ok(None),
        read => stream.read_exact(&mut length[read..])?,
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > most {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a frame of {length} bytes is too long"),
        ));
    }
    let mut frame = vec![0; length];
    stream.read_exact(&mut frame)?;
    Ok(Some(frame))
}

/// Writes one frame.
pub(crate) fn write_frame(stream: &mut impl Write, frame: &[u8]) -> io::Result<()> {
    let length = u32::try_from(frame.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut message = Vec::with_capacity(4 + frame.len());
    message.extend_from_slice(&length.to_le_bytes());
    message.extend_from_slice(frame);
    stream.write_all(&message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_reads_back() {
        let mut bytes = Vec::new();
        write_frame(&mut bytes, b"hello").expect("write");
        assert_eq!(
            read_frame(&mut bytes.as_slice(), 5)
                .expect("read")
                .as_deref(),
            Some(&b"hello"[..])
        );
    }

    #[test]
    fn a_length_beyond_the_limit_is_refused_before_memory_is_taken() {
        let bytes = u32::MAX.to_le_bytes();
        assert_eq!(
            read_frame(&mut bytes.as_slice(), 100).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
    }

    #[test]
    fn a_cut_frame_is_an_error_and_an_end_between_frames_is_not() {
        assert!(read_frame(&mut [5, 0, 0, 0, 1].as_slice(), 100).is_err());
        assert!(read_frame(&mut [5, 0].as_slice(), 100).is_err());
        assert!(
            read_frame(&mut [].as_slice(), 100)
                .expect("clean end")
                .is_none()
        );
    }

    #[test]
    fn an_archive_reader_joins_frames_until_the_empty_one() {
        let mut bytes = Vec::new();
        for frame in [&b"ab"[..], b"c", b"", b"rest"] {
            write_frame(&mut bytes, frame).expect("write");
        }
        let mut text = String::new();
        FrameReader::new(&mut bytes.as_slice())
            .read_to_string(&mut text)
            .expect("read");
        assert_eq!(text, "abc");
    }
}

/// Reads archive data out of frames, up to the empty one.
pub(crate) struct FrameReader<'a, R> {
    stream: &'a mut R,
    frame: Vec<u8>,
    at: usize,
    ended: bool,
}

impl<'a, R: Read> FrameReader<'a, R> {
    pub(crate) fn new(stream: &'a mut R) -> Self {
        Self {
            stream,
            frame: Vec::new(),
            at: 0,
            ended: false,
        }
    }

    /// Reads what is left, so that the next request is not mistaken for data.
    pub(crate) fn drain(mut self) -> io::Result<()> {
        io::copy(&mut self, &mut io::sink()).map(drop)
    }
}

impl<R: Read> Read for FrameReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.frame.len() && !self.ended {
            self.frame =
                read_frame(self.stream, MAX_REQUEST)?.ok_or(io::ErrorKind::UnexpectedEof)?;
            self.at = 0;
            self.ended = self.frame.is_empty();
        }
        let count = buffer.len().min(self.frame.len() - self.at);
        buffer[..count].copy_from_slice(&self.frame[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}
