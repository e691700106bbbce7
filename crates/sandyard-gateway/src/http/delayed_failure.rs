//! Delays the failure of a body.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// A body that reports its failure one poll later.
///
/// When a body fails, hyper drops unwritten bytes. The delay lets hyper write them, so that a program gets everything that
/// arrived.
#[derive(Debug)]
pub(super) struct DelayedFailure<B> {
    inner: B,
    failure: Option<hyper::Error>,
}

impl<B> DelayedFailure<B> {
    pub(super) fn new(inner: B) -> Self {
        Self {
            inner,
            failure: None,
        }
    }
}

impl<B> Body for DelayedFailure<B>
where
    B: Body<Data = Bytes, Error = hyper::Error> + Unpin,
{
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        if let Some(failure) = this.failure.take() {
            return Poll::Ready(Some(Err(failure)));
        }
        match ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
            Some(Err(failure)) => {
                this.failure = Some(failure);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            frame => Poll::Ready(frame),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.failure.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
