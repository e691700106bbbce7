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

/// The first bytes of a program that uses HTTP/2 without an upgrade: RFC 9113, 3.4.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Forwards requests without TLS. Each is checked to be for this host, or for a name that `other_names` allows, and changed as the
/// current grant says.
pub(crate) async fn carry_plain<S>(
    program: S,
    remote: Dialled,
    host: Host,
    grant: GrantSource,
    other_names: Option<NameJudge>,
) -> Result<(), HttpFailure>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (protocol, program) = match PeekedStream::read(program).await {
        Ok(peeked) => peeked,
        // The program closed the connection.
        Err(_) => return Ok(()),
    };
    if protocol == Protocol::Http2 && remote.whole_urls.is_some() {
        let text = format!(
            "`{}` is reached through a proxy that does not support HTTP/2 without TLS: use HTTP/1.1",
            host.name
        );
        return Err(HttpFailure::Failed(text));
    }
    let terms = ConnectionTerms {
        host,
        is_tls: false,
        grant,
        whole_urls: remote.whole_urls,
        other_names,
    };
    connection::carry(program, remote.stream, protocol, terms).await
}

/// A connection whose first bytes have been read.
#[derive(Debug)]
struct PeekedStream<S> {
    first: Bytes,
    rest: S,
}

impl<S: AsyncRead + Unpin> PeekedStream<S> {
    /// Reads as much as needed to distinguish the versions.
    async fn read(mut stream: S) -> io::Result<(Protocol, Self)> {
        let mut first = BytesMut::new();
        let protocol = loop {
            let seen = first.len().min(PREFACE.len());
            if first[..seen] != PREFACE[..seen] {
                break Protocol::Http1;
            }
            if seen == PREFACE.len() {
                break Protocol::Http2;
            }
            if stream.read_buf(&mut first).await? == 0 {
                break Protocol::Http1;
            }
        };
        let peeked = Self {
            first: first.freeze(),
            rest: stream,
        };
        Ok((protocol, peeked))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PeekedStream<S> {
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

impl<S: AsyncWrite + Unpin> AsyncWrite for PeekedStream<S> {
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
