//! The envelope of Connect streams: one byte of flags, four of length (big-endian), then the payload.

use bytes::{Buf, Bytes, BytesMut};
use serde::Serialize;

use crate::connect_error::{ConnectError, EndStream};

/// Bytes before each payload.
pub const HEADER_LEN: usize = 5;

/// Payload is compressed. Nobody here negotiates that, so it is an error on input.
pub const FLAG_COMPRESSED: u8 = 0b01;

/// Payload is the end of the stream: an [`EndStream`].
pub const FLAG_END: u8 = 0b10;

/// The largest payload either side accepts unless told otherwise.
pub const MAX_FRAME_LEN: usize = 4 << 20;

/// One message of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A message.
    Message(Bytes),
    /// The last frame.
    End(Bytes),
}

/// Why bytes are no frames. A stream is useless after any of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The sender announced more than is accepted.
    #[error("frame of {len} bytes is over the limit of {max}")]
    TooLarge {
        /// What was announced.
        len: usize,
        /// What is accepted.
        max: usize,
    },
    /// Compression was never agreed on.
    #[error("frame is compressed, which was not agreed on")]
    Compressed,
    /// Bits nobody has defined.
    #[error("frame has unknown flags {0:#04x}")]
    UnknownFlags(u8),
    /// Bytes after the last frame.
    #[error("bytes follow the last frame")]
    AfterEnd,
    /// The bytes stop within a frame.
    #[error("stream ends within a frame")]
    Truncated,
}

/// Puts a payload into an envelope.
///
/// # Panics
///
/// When the payload is over 4 GiB, which the length field cannot say; no caller comes near.
pub fn encode(flags: u8, payload: &[u8]) -> Bytes {
    let mut frame = Vec::with_capacity(HEADER_LEN + payload.len());
    frame.extend_from_slice(&[0; HEADER_LEN]);
    frame.extend_from_slice(payload);
    seal(flags, frame)
}

/// Writes a message as JSON straight into an envelope.
pub fn encode_json<T: Serialize>(message: &T) -> Result<Bytes, serde_json::Error> {
    encode_json_with_flags(0, message)
}

/// Returns the last frame of a stream that went well or, with an error, did not.
pub fn encode_end(error: Option<ConnectError>) -> Bytes {
    encode_json_with_flags(FLAG_END, &EndStream { error }).expect("two strings always serialise")
}

fn encode_json_with_flags<T: Serialize>(
    flags: u8,
    message: &T,
) -> Result<Bytes, serde_json::Error> {
    let mut frame = vec![0; HEADER_LEN];
    serde_json::to_writer(&mut frame, message)?;
    Ok(seal(flags, frame))
}

fn seal(flags: u8, mut frame: Vec<u8>) -> Bytes {
    let len = u32::try_from(frame.len() - HEADER_LEN).expect("payloads stay far below 4 GiB");
    frame[0] = flags;
    frame[1..HEADER_LEN].copy_from_slice(&len.to_be_bytes());
    Bytes::from(frame)
}

/// Takes frames out of bytes that come in pieces of any size.
///
/// Call [`push`](Self::push) for each piece, then [`next_frame`](Self::next_frame) until it has none left. Used that way it holds
/// at most one incomplete frame plus one piece, since a frame over the limit is refused at its header. After an error
/// it holds nothing and repeats the error.
#[derive(Debug)]
pub struct Decoder {
    buffer: BytesMut,
    max_frame_len: usize,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Ended,
    Failed(FrameError),
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(MAX_FRAME_LEN)
    }
}

impl Decoder {
    /// Makes a decoder that refuses payloads over `max_frame_len` bytes.
    pub fn new(max_frame_len: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            max_frame_len,
            state: State::Open,
        }
    }

    /// Adds bytes as they came.
    pub fn push(&mut self, bytes: &[u8]) {
        match self.state {
            State::Open => self.buffer.extend_from_slice(bytes),
            State::Ended if bytes.is_empty() => {}
            State::Ended => self.state = State::Failed(FrameError::AfterEnd),
            State::Failed(_) => {}
        }
    }

    /// Takes out the next complete frame, if there is one.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        match self.state {
            State::Open => self.take().inspect_err(|&error| self.fail(error)),
            State::Ended => Ok(None),
            State::Failed(error) => Err(error),
        }
    }

    /// Checks, once no more bytes will come, that none were missing.
    pub fn finish(&self) -> Result<(), FrameError> {
        match self.state {
            State::Failed(error) => Err(error),
            State::Open if !self.buffer.is_empty() => Err(FrameError::Truncated),
            State::Open | State::Ended => Ok(()),
        }
    }

    /// Tells whether the last frame has come. A stream that stops before it was cut off.
    pub fn is_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Returns how many bytes wait for the rest of their frame.
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    fn take(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some((header, rest)) = self.buffer.split_first_chunk::<HEADER_LEN>() else {
            return Ok(None);
        };
        let [flags, length @ ..] = *header;
        // Usize has at least the 32 bits of the field on every Linux.
        let len = u32::from_be_bytes(length) as usize;
        match flags {
            0 | FLAG_END => {}
            _ if flags & FLAG_COMPRESSED != 0 => return Err(FrameError::Compressed),
            _ => return Err(FrameError::UnknownFlags(flags)),
        }
        if len > self.max_frame_len {
            return Err(FrameError::TooLarge {
                len,
                max: self.max_frame_len,
            });
        }
        if rest.len() < len {
            return Ok(None);
        }
        self.buffer.advance(HEADER_LEN);
        let payload = self.buffer.split_to(len).freeze();
        if flags != FLAG_END {
            return Ok(Some(Frame::Message(payload)));
        }
        if !self.buffer.is_empty() {
            return Err(FrameError::AfterEnd);
        }
        self.state = State::Ended;
        Ok(Some(Frame::End(payload)))
    }

    fn fail(&mut self, error: FrameError) {
        self.buffer = BytesMut::new();
        self.state = State::Failed(error);
    }
}
