//! Plain bytes from whatever compression an archive has, told by its first bytes.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::StreamingDecoder;

use crate::error::{OperationExt, Result, TemplateError};

/// Most memory a decompressor may ask for: what `xz -9` and `zstd --ultra` need, with room; a header can ask for 4 GiB.
const MAX_WINDOW: u64 = 256 << 20;
const BUFFER: usize = 128 << 10;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// Zstandard frames that carry no data begin with 0x184D2A50 to 0x184D2A5F, little-endian.
const ZSTD_SKIPPABLE: &[u8] = &[0x2a, 0x4d, 0x18];
const XZ: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
const BZIP2: &[u8] = b"BZh";

/// Reads the beginning and returns a reader of the plain bytes.
pub(super) fn open<'a>(mut reader: impl Read + 'a) -> Result<Box<dyn Read + 'a>> {
    let mut magic = Vec::with_capacity(6);
    (&mut reader)
        .take(6)
        .read_to_end(&mut magic)
        .operation(|| "read the archive".to_owned())?;
    let whole = Cursor::new(magic.clone()).chain(reader);
    let buffered = BufReader::with_capacity(BUFFER, whole);
    if magic.starts_with(GZIP) {
        Ok(Box::new(MultiGzDecoder::new(buffered)))
    } else if magic.starts_with(ZSTD) || is_skippable(&magic) {
        Ok(Box::new(ZstdFrames::new(buffered)))
    } else if magic.starts_with(XZ) {
        let limit_kib = u32::try_from(MAX_WINDOW / 1024).unwrap_or(u32::MAX);
        Ok(Box::new(XzReader::new_mem_limit(buffered, true, limit_kib)))
    } else if magic.starts_with(BZIP2) {
        Err(TemplateError::archive(
            "bzip2 is not supported; use gzip, zstd, xz or none",
        ))
    } else {
        Ok(Box::new(buffered))
    }
}

fn is_skippable(magic: &[u8]) -> bool {
    magic.first().is_some_and(|byte| byte & 0xf0 == 0x50) && magic[1..].starts_with(ZSTD_SKIPPABLE)
}

/// All frames of a zstd stream, one after the other: parallel compressors write many.
struct ZstdFrames<R: BufRead> {
    state: State<R>,
}

enum State<R: BufRead> {
    Between(R),
    Frame(Box<StreamingDecoder<R, ruzstd::decoding::FrameDecoder>>),
    Ended,
}

impl<R: BufRead> ZstdFrames<R> {
    fn new(reader: R) -> Self {
        Self {
            state: State::Between(reader),
        }
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match std::mem::replace(&mut self.state, State::Ended) {
                State::Ended => return Ok(0),
                State::Between(reader) => self.state = next_frame(reader)?,
                State::Frame(mut frame) => {
                    let count = frame.read(buffer)?;
                    if count > 0 {
                        self.state = State::Frame(frame);
                        return Ok(count);
                    }
                    let (reader, decoder) = frame.into_parts();
                    let stored = decoder.get_checksum_from_data();
                    if stored.is_some() && stored != decoder.get_calculated_checksum() {
                        return Err(invalid("a zstd frame has a wrong checksum"));
                    }
                    self.state = State::Between(reader);
                }
            }
        }
    }
}

fn next_frame<R: BufRead>(mut reader: R) -> io::Result<State<R>> {
    loop {
        let Some(&first) = reader.fill_buf()?.first() else {
            return Ok(State::Ended);
        };
        // One byte tells the two kinds of frame apart, and one is all a buffer is sure to hold.
        if first & 0xf0 != 0x50 {
            let frame = StreamingDecoder::new_with_max_window_size(reader, MAX_WINDOW);
            let frame = frame.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            return Ok(State::Frame(Box::new(frame)));
        }
        let (mut magic, mut length) = ([0; 4], [0; 4]);
        reader.read_exact(&mut magic)?;
        reader.read_exact(&mut length)?;
        if !is_skippable(&magic) {
            return Err(invalid("not a zstd frame"));
        }
        let length = u64::from(u32::from_le_bytes(length));
        io::copy(&mut (&mut reader).take(length), &mut io::sink())?;
    }
}

fn invalid(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
