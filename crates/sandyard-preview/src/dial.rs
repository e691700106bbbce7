//! How a port inside a sandbox is reached.

use std::error::Error;

use http::HeaderMap;
use tokio::io::{AsyncRead, AsyncWrite};

/// A connection to a port inside a sandbox.
#[derive(Debug)]
pub struct Dialled<S> {
    /// What carries the bytes.
    pub stream: S,
    /// What the request has to carry in place of its own headers of these names: a proxy on the way goes by them. They are put on
    /// last, so no client has a say in them; `X-Forwarded-Host` still tells what the client asked for.
    pub headers: HeaderMap,
}

impl<S> From<S> for Dialled<S> {
    /// A connection that leads straight to the port.
    fn from(stream: S) -> Self {
        Self {
            stream,
            headers: HeaderMap::new(),
        }
    }
}

/// Opens a byte stream to a port inside a sandbox. Any `FnOnce(u16)` with a fitting future is one.
pub trait Dial: Send {
    /// What carries the bytes.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Connects. May be dropped half-way, and then leaves nothing open.
    fn dial(
        self,
        port: u16,
    ) -> impl Future<Output = Result<Dialled<Self::Stream>, DialError>> + Send;
}

impl<F, Fut, S> Dial for F
where
    F: FnOnce(u16) -> Fut + Send,
    Fut: Future<Output = Result<Dialled<S>, DialError>> + Send,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = S;

    fn dial(self, port: u16) -> impl Future<Output = Result<Dialled<S>, DialError>> + Send {
        self(port)
    }
}

/// Says why a port cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The sandbox is there, and nothing listens.
    #[error("nothing listens on the port")]
    PortClosed,
    /// It took too long.
    #[error("connecting took too long")]
    Timeout,
    /// The sandbox itself cannot be reached.
    #[error("failed to reach the sandbox")]
    Unreachable(#[source] Box<dyn Error + Send + Sync>),
}
