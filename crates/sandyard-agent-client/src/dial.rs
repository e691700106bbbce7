//! Bytes to a TCP port inside the sandbox.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Method, StatusCode};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use sandyard_wire::routes::{self, DIAL_UPGRADE, query};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::body;
use crate::call::{finish, unexpected_status, within};
use crate::client::AgentClient;
use crate::error::ClientError;
use crate::query::with_query;

/// A connection to a port inside the sandbox.
#[derive(Debug)]
pub struct DialStream(TokioIo<Upgraded>);

impl AgentClient {
    /// Connects to a TCP port on the sandbox's loopback. Only over the host's own socket.
    pub async fn dial(&self, port: u16) -> Result<DialStream, ClientError> {
        let call = routes::DIAL;
        let uri = with_query(call, &[(query::PORT, &port.to_string())]);
        let builder = self
            .request(Method::GET, &uri)
            .header(http::header::CONNECTION, "upgrade")
            .header(http::header::UPGRADE, DIAL_UPGRADE);
        let request = finish(builder, body::empty())?;
        within(call, self.limits().call_timeout, async {
            let (_sender, reply) = self.send_new(call, request).await?;
            let status = reply.status();
            if status.is_client_error() || status.is_server_error() {
                return Err(self.failure(call, reply).await);
            }
            if status != StatusCode::SWITCHING_PROTOCOLS {
                return Err(unexpected_status(call, status));
            }
            let upgraded = hyper::upgrade::on(reply)
                .await
                .map_err(|error| self.hyper_error(call, error))?;
            Ok(DialStream(TokioIo::new(upgraded)))
        })
        .await
    }
}

impl AsyncRead for DialStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for DialStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
