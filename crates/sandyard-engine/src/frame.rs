//! Frames between the engine's client and a worker: a length of four bytes, least significant first, and that many bytes.

use std::io::{self, Read, Write};

use crate::protocol::MAX_REQUEST;

/// Reads one frame; `None` at a clean end.
pub(crate) fn read_frame(stream: &mut impl Read, max_bytes: usize) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match stream.read(&mut length)? {
        0 => return Ok(None),
        read => stream.read_exact(&mut length[read..])?,
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > max_bytes {
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
    stream.write_all(&encode(frame)?)
}

/// Puts the length before a frame, so that both go out in one write.
pub(crate) fn encode(frame: &[u8]) -> io::Result<Vec<u8>> {
    let length = u32::try_from(frame.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut message = Vec::with_capacity(4 + frame.len());
    message.extend_from_slice(&length.to_le_bytes());
    message.extend_from_slice(frame);
    Ok(message)
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
