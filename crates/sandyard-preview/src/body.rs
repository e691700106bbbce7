//! Bodies on their way through: passed on frame by frame, never held.

use std::any::Any;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use tokio::task::JoinHandle;

use crate::gate::Gate;
use crate::request::strip_credentials;
use crate::wait::Progress;

/// Any error of a body.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// What our responses carry.
pub type PreviewBody = UnsyncBoxBody<Bytes, BoxError>;

pub(crate) fn empty() -> PreviewBody {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

pub(crate) fn full(text: String) -> PreviewBody {
    Full::new(Bytes::from(text))
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// The client's body on its way to the port.
pub(crate) struct Outbound<B> {
    inner: Pin<Box<B>>,
    gate: Option<Gate>,
    progress: Arc<Progress>,
}

impl<B> Outbound<B> {
    pub(crate) fn new(inner: B, gate: Option<Gate>, progress: Arc<Progress>) -> Self {
        Self {
            inner: Box::pin(inner),
            gate,
            progress,
        }
    }
}

impl<B> Body for Outbound<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        if let Some(gate) = &mut self.gate {
            ready!(gate.poll_open(cx));
            self.gate = None;
        }
        let frame = ready!(self.inner.as_mut().poll_frame(cx));
        match &frame {
            Some(Err(_)) => self.progress.client_left(),
            _ => self.progress.moved(),
        }
        let clean = |mut frame: Frame<B::Data>| {
            if let Some(trailers) = frame.trailers_mut() {
                strip_credentials(trailers);
            }
            frame
        };
        Poll::Ready(frame.map(|frame| frame.map(clean).map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Stops the task that drives a connection when its response is dropped.
#[derive(Debug)]
pub(crate) struct AbortOnDrop(pub(crate) JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The port's body on its way to the client.
pub(crate) struct Inbound {
    pub(crate) inner: Incoming,
    /// Without the body nobody reads the connection.
    pub(crate) _connection: AbortOnDrop,
    pub(crate) _guard: Option<Box<dyn Any + Send>>,
}

impl Body for Inbound {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.inner)
            .poll_frame(cx)
            .map_err(BoxError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
