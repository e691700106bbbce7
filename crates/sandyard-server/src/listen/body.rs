//! Bodies of requests that stop coming.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

/// A client that announced a body and then sent none of it for too long.
#[derive(Debug, thiserror::Error)]
#[error("the body stopped coming")]
pub(crate) struct Late;

/// Says whether an error is, at its root, that a body stopped coming.
pub(crate) fn is_late(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<Late>() {
            return true;
        }
        next = error.source();
    }
    false
}

/// A body that fails when it is waited for and nothing comes. One that nobody asks for has all the time there is, since
/// then it is not the client that is slow.
pub(super) struct TimedBody<B> {
    body: B,
    patience: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<B> TimedBody<B> {
    pub(super) fn new(body: B, patience: Duration) -> Self {
        Self {
            body,
            patience,
            waiting: None,
        }
    }
}

impl<B> Body for TimedBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(context) {
            this.waiting = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let patience = this.patience;
        let waiting = this
            .waiting
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        waiting
            .as_mut()
            .poll(context)
            .map(|()| Some(Err(Late.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, stream};
    use http_body_util::{BodyExt, StreamBody};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    /// A piece after each of these pauses.
    fn body(pauses: &'static [u64]) -> TimedBody<impl Body<Data = Bytes, Error = Late> + Unpin> {
        let pieces = stream::iter(pauses).then(|seconds| async move {
            tokio::time::sleep(Duration::from_secs(*seconds)).await;
            Ok::<_, Late>(Frame::data(Bytes::from_static(b"x")))
        });
        TimedBody::new(StreamBody::new(Box::pin(pieces)), PATIENCE)
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_may_take_long_but_not_stop() {
        let whole = body(&[29, 29, 29]).collect().await.unwrap();
        assert_eq!(whole.to_bytes(), "xxx");
        let error = body(&[1, 31]).collect().await.unwrap_err();
        assert!(is_late(&*error));
    }

    #[tokio::test(start_paused = true)]
    async fn the_reason_is_found_through_what_wraps_it() {
        let body = axum::body::Body::new(body(&[31]));
        let error = axum::body::to_bytes(body, 10).await.unwrap_err();
        assert!(is_late(&std::io::Error::other(error)));
        assert!(!is_late(&std::io::Error::other("else")));
    }
}
