//! One connection of a link.
//!
//! ```text
//! two bytes of length, most significant first, and that many bytes; a length of zero is the end of that direction
//! ```
//! yamux does not distinguish ends: a stream that was reset, or whose link is gone, reads like one that has ended. A program that
//! takes a part for the whole is worse off than one that sees an error, so the end is sent explicitly here.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::compat::{Compat, FuturesAsyncReadCompatExt};

/// Size of a length, in bytes.
const HEAD: usize = 2;
/// Maximum size of one piece: with its length it fills one yamux frame.
const MAX_PIECE: usize = 16 * 1024 - HEAD;

/// A connection. Dropped before both directions have ended, it is broken off, and the other side sees an error.
#[derive(Debug)]
pub struct LinkStream {
    // Declared before the slot, so that it is dropped first.
    stream: Compat<yamux::Stream>,
    reading: Reading,
    /// The piece that is being written.
    piece: Vec<u8>,
    /// How many bytes of it are written.
    position: usize,
    has_ended: bool,
    _slot: OwnedSemaphorePermit,
}

#[derive(Clone, Copy, Debug)]
enum Reading {
    /// This many bytes of the length are read.
    Head([u8; HEAD], usize),
    /// This many bytes of the piece are still to be read.
    Piece(usize),
    Ended,
}

const FIRST: Reading = Reading::Head([0; HEAD], 0);

impl LinkStream {
    pub(crate) fn new(stream: yamux::Stream, slot: OwnedSemaphorePermit) -> Self {
        Self {
            stream: stream.compat(),
            reading: FIRST,
            piece: Vec::new(),
            position: 0,
            has_ended: false,
            _slot: slot,
        }
    }

    /// Writes the rest of the piece.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self
            .piece
            .get(self.position..)
            .filter(|rest| !rest.is_empty())
        {
            match ready!(Pin::new(&mut self.stream).poll_write(cx, rest)) {
                Ok(count @ 1..) => self.position += count,
                // The link or the other side is gone.
                Ok(0) | Err(_) => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            }
        }
        Poll::Ready(Ok(()))
    }

    fn put(&mut self, bytes: &[u8]) {
        let length = u16::try_from(bytes.len()).unwrap_or_default();
        self.position = 0;
        self.piece.clear();
        self.piece.extend_from_slice(&length.to_be_bytes());
        self.piece.extend_from_slice(bytes);
    }

    /// Reads between one and `max` bytes.
    fn poll_some(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
        max: usize,
    ) -> Poll<io::Result<usize>> {
        let len = max.min(buffer.remaining());
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(len));
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut part))?;
        let count = part.filled().len();
        if count == 0 {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        buffer.advance(count);
        Poll::Ready(Ok(count))
    }
}

impl AsyncRead for LinkStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        loop {
            match this.reading {
                Reading::Ended => return Poll::Ready(Ok(())),
                Reading::Head(mut head, have) => {
                    let mut rest = ReadBuf::new(&mut head[have..]);
                    let count = ready!(this.poll_some(cx, &mut rest, HEAD - have))?;
                    this.reading = match (have + count, u16::from_be_bytes(head)) {
                        (HEAD, 0) => Reading::Ended,
                        (HEAD, length) => Reading::Piece(length.into()),
                        (have, _) => Reading::Head(head, have),
                    };
                }
                Reading::Piece(remaining) => {
                    let count = ready!(this.poll_some(cx, buffer, remaining))?;
                    this.reading = match remaining - count {
                        0 => FIRST,
                        remaining => Reading::Piece(remaining),
                    };
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl AsyncWrite for LinkStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_piece(cx))?;
        if this.has_ended {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let bytes = &bytes[..bytes.len().min(MAX_PIECE)];
        if !bytes.is_empty() {
            this.put(bytes);
            // What does not fit now is written by the next call, as with any buffered writer.
            if let Poll::Ready(Err(error)) = this.poll_piece(cx) {
                return Poll::Ready(Err(error));
            }
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_piece(cx))?;
        Pin::new(&mut this.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_piece(cx))?;
        if !self.has_ended {
            self.has_ended = true;
            self.put(&[]);
        }
        // The yamux stream stays open: its own end would add no information.
        self.poll_flush(cx)
    }
}
