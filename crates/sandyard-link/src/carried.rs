//! One connection of many.
//!
//! ```text
//! two bytes of length, most significant first, and that many bytes; a length of zero is the end of that direction
//! ```
//! yamux tells no end from another: a stream that was reset, or whose link is gone, reads as one that has ended. A program that takes
//! a part for the whole is worse off than one that sees an error, so the end is said here.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::compat::{Compat, FuturesAsyncReadCompatExt};

/// Bytes of a length.
const HEAD: usize = 2;
/// Most bytes of one piece: with its length it is what yamux sends in one go.
const MOST: usize = 16 * 1024 - HEAD;

/// A connection. Dropped before both directions have ended, it is broken off, and the other side sees an error.
#[derive(Debug)]
pub struct Carried {
    // Before the slot: whoever gets that one finds this one gone.
    stream: Compat<yamux::Stream>,
    reading: Reading,
    /// A piece that is under way.
    piece: Vec<u8>,
    /// How much of it is gone.
    sent: usize,
    has_ended: bool,
    _slot: OwnedSemaphorePermit,
}

#[derive(Clone, Copy, Debug)]
enum Reading {
    /// So many bytes of the length are there.
    Head([u8; HEAD], usize),
    /// So many bytes of the piece are to come.
    Piece(usize),
    Ended,
}

const FIRST: Reading = Reading::Head([0; HEAD], 0);

impl Carried {
    pub(crate) fn new(stream: yamux::Stream, slot: OwnedSemaphorePermit) -> Self {
        Self {
            stream: stream.compat(),
            reading: FIRST,
            piece: Vec::new(),
            sent: 0,
            has_ended: false,
            _slot: slot,
        }
    }

    /// Hands the rest of the piece over.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(rest) = self.piece.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match ready!(Pin::new(&mut self.stream).poll_write(cx, rest)) {
                Ok(count @ 1..) => self.sent += count,
                // Whatever the reason, the link or the other side is gone.
                Ok(0) | Err(_) => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            }
        }
        Poll::Ready(Ok(()))
    }

    fn put(&mut self, bytes: &[u8]) {
        let length = u16::try_from(bytes.len()).unwrap_or_default();
        self.sent = 0;
        self.piece.clear();
        self.piece.extend_from_slice(&length.to_be_bytes());
        self.piece.extend_from_slice(bytes);
    }

    /// Reads at most so many bytes; never none.
    fn poll_some(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        let most = most.min(buffer.remaining());
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(most));
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut part))?;
        let count = part.filled().len();
        if count == 0 {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        buffer.advance(count);
        Poll::Ready(Ok(count))
    }
}

impl AsyncRead for Carried {
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
                Reading::Piece(left) => {
                    let count = ready!(this.poll_some(cx, buffer, left))?;
                    this.reading = match left - count {
                        0 => FIRST,
                        left => Reading::Piece(left),
                    };
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }
}

impl AsyncWrite for Carried {
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
        let bytes = &bytes[..bytes.len().min(MOST)];
        if !bytes.is_empty() {
            this.put(bytes);
            // What there is no room for now goes with the next call, as with any writer that buffers.
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
        // Not the stream's own end: it would tell the other side nothing more.
        self.poll_flush(cx)
    }
}
