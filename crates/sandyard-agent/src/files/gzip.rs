//! Compressed bodies, piece by piece.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::{GzEncoder, MultiGzDecoder};

/// Maximum unpacked size of a piece before it is passed on, in bytes.
const MAX_BURST_BYTES: usize = 1024 * 1024;

/// Whether a client wants its download compressed.
///
/// Only a client that accepts nothing but gzip does: every HTTP library offers a list of encodings by default, and
/// compressing for all of those would make downloads slower than the socket.
pub(super) fn is_wanted(accept_encoding: Option<&str>) -> bool {
    accept_encoding.is_some_and(|list| {
        let mut names = list
            .split(',')
            .map(|item| item.split(';').next().unwrap_or_default().trim());
        names.all(|name| name.eq_ignore_ascii_case("gzip"))
    })
}

/// Compresses bytes.
pub(super) struct Packer(GzEncoder<Vec<u8>>);

impl Packer {
    pub(super) fn new() -> Self {
        Self(GzEncoder::new(Vec::new(), Compression::fast()))
    }

    /// Takes a piece and returns what is ready.
    pub(super) fn push(&mut self, piece: &[u8]) -> io::Result<Bytes> {
        self.0.write_all(piece)?;
        Ok(std::mem::take(self.0.get_mut()).into())
    }

    /// Returns the rest.
    pub(super) fn finish(self) -> io::Result<Bytes> {
        Ok(self.0.finish()?.into())
    }
}

/// Decompresses bytes.
pub(super) struct Unpacker(MultiGzDecoder<Vec<u8>>);

impl Unpacker {
    pub(super) fn new() -> Self {
        Self(MultiGzDecoder::new(Vec::new()))
    }

    /// Unpacks a piece, and passes the bytes on in bursts that stay small however much the piece unpacks to.
    pub(super) fn push(
        &mut self,
        mut piece: &[u8],
        mut sink: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        while !piece.is_empty() {
            // gzip expands at most about a thousandfold.
            let part = piece.len().min(MAX_BURST_BYTES / 1024);
            self.0.write_all(&piece[..part])?;
            piece = &piece[part..];
            if self.0.get_ref().len() >= MAX_BURST_BYTES / 4 || piece.is_empty() {
                sink(self.0.get_ref())?;
                self.0.get_mut().clear();
            }
        }
        Ok(())
    }

    /// Checks that the input is complete, and passes the rest on.
    pub(super) fn finish(
        mut self,
        mut sink: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        self.0.try_finish()?;
        sink(self.0.get_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_and_unpacking_give_the_same_back() {
        let text = b"sandbox ".repeat(100_000);
        let mut packer = Packer::new();
        let mut packed = Vec::new();
        for piece in text.chunks(10_000) {
            packed.extend_from_slice(&packer.push(piece).unwrap());
        }
        packed.extend_from_slice(&packer.finish().unwrap());
        let mut unpacker = Unpacker::new();
        let mut back = Vec::new();
        let mut largest = 0;
        let mut take = |bytes: &[u8]| {
            largest = largest.max(bytes.len());
            back.extend_from_slice(bytes);
            Ok(())
        };
        for piece in packed.chunks(777) {
            unpacker.push(piece, &mut take).unwrap();
        }
        unpacker.finish(&mut take).unwrap();
        assert!(largest <= 2 * MAX_BURST_BYTES);
        assert_eq!(back, text);
    }

    #[test]
    fn cut_off_or_broken_input_is_an_error() {
        let mut packer = Packer::new();
        let mut packed = packer.push(b"hello").unwrap().to_vec();
        packed.extend_from_slice(&packer.finish().unwrap());
        let mut cut = Unpacker::new();
        let half = &packed[..packed.len() / 2];
        assert!(cut.push(half, |_| Ok(())).is_err() || cut.finish(|_| Ok(())).is_err());
        assert!(
            Unpacker::new()
                .push(b"not gzip at all", |_| Ok(()))
                .is_err()
        );
    }

    #[test]
    fn only_a_client_that_accepts_nothing_else_gets_gzip() {
        assert!(is_wanted(Some("gzip")));
        assert!(!is_wanted(Some("gzip, deflate, br")));
        assert!(!is_wanted(Some("")));
        assert!(!is_wanted(None));
    }
}
