//! The program's socket as an async stream.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::program_socket::ProgramSocket;

/// Maximum bytes per read or write.
const PIECE: usize = 32 * 1024;

type Receiving = Pin<Box<dyn Future<Output = io::Result<Vec<u8>>> + Send>>;
type Sending = Pin<Box<dyn Future<Output = io::Result<usize>> + Send>>;

/// A stream that begins with bytes that were read already.
pub(crate) struct ProgramStream {
    program: Arc<ProgramSocket>,
    first: Bytes,
    receiving: Option<Receiving>,
    sending: Option<Sending>,
}

impl ProgramStream {
    pub(crate) fn new(program: Arc<ProgramSocket>, first: Bytes) -> Self {
        Self {
            program,
            first,
            receiving: None,
            sending: None,
        }
    }
}

impl AsyncRead for ProgramStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.first.is_empty() {
            let max = buf.remaining().min(PIECE).min(this.program.piece_bytes());
            let receiving = this.receiving.get_or_insert_with(|| {
                let program = this.program.clone();
                Box::pin(async move {
                    let (mut piece, count) = program.receive_into(|| vec![0; max]).await?;
                    piece.truncate(count);
                    Ok(piece)
                })
            });
            let received = ready!(receiving.as_mut().poll(cx));
            this.receiving = None;
            this.first = received?.into();
        }
        let count = this.first.len().min(buf.remaining());
        buf.put_slice(&this.first[..count]);
        this.first.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ProgramStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        // A pending write has the same bytes: writers repeat what was not accepted.
        let sending = this.sending.get_or_insert_with(|| {
            let program = this.program.clone();
            let max = this.program.piece_bytes().min(PIECE);
            let piece = bytes[..bytes.len().min(max)].to_vec();
            Box::pin(async move { program.send(&piece).await })
        });
        let sent = ready!(sending.as_mut().poll(cx));
        this.sending = None;
        Poll::Ready(sent.map(|count| count.min(bytes.len())))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.program.finish();
        Poll::Ready(Ok(()))
    }
}
