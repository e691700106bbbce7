//! Requests without TLS.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use super::HttpFailure;
use super::connection;
use super::exchange::{ConnectionTerms, GrantSource, NameJudge};
use super::host::Host;
use super::versions::Protocol;
use crate::dial::Dialled;

/// What a program says first that speaks HTTP/2 at once: RFC 9113, 3.4.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Carries requests without TLS, each one checked to be for this host, or for a name that `other_names` allows, and changed as the
/// grant says at that moment.
pub(crate) async fn carry_plain<S>(
    inside: S,
    outside: Dialled,
    host: Host,
    grant: GrantSource,
    other_names: Option<NameJudge>,
) -> Result<(), HttpFailure>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (protocol, inside) = match Begun::read(inside).await {
        Ok(begun) => begun,
        // It went away without a word.
        Err(_) => return Ok(()),
    };
    if protocol == Protocol::Two && outside.whole_urls.is_some() {
        let text = format!(
            "`{}` is reached by a proxy that knows no HTTP/2 without TLS",
            host.name
        );
        return Err(HttpFailure::Failed(text));
    }
    let terms = ConnectionTerms {
        host,
        is_tls: false,
        grant,
        whole_urls: outside.whole_urls,
        other_names,
    };
    connection::carry(inside, outside.stream, protocol, terms).await
}

/// A connection of which the beginning has been read.
#[derive(Debug)]
struct Begun<S> {
    first: Bytes,
    rest: S,
}

impl<S: AsyncRead + Unpin> Begun<S> {
    /// Reads as much as it takes to tell the versions apart.
    async fn read(mut stream: S) -> io::Result<(Protocol, Self)> {
        let mut first = BytesMut::new();
        let protocol = loop {
            let seen = first.len().min(PREFACE.len());
            if first[..seen] != PREFACE[..seen] {
                break Protocol::One;
            }
            if seen == PREFACE.len() {
                break Protocol::Two;
            }
            if stream.read_buf(&mut first).await? == 0 {
                break Protocol::One;
            }
        };
        let begun = Self {
            first: first.freeze(),
            rest: stream,
        };
        Ok((protocol, begun))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Begun<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.rest).poll_read(cx, buffer);
        }
        let bytes = self.first.len().min(buffer.remaining());
        buffer.put_slice(&self.first[..bytes]);
        self.first.advance(bytes);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Begun<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.rest).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.rest).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.rest.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.rest).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.rest).poll_shutdown(cx)
    }
}
