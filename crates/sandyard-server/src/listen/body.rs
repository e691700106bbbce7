//! Bodies of requests that stop coming, or that nobody wants any more.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
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

/// For how long the rest of a body is still taken after its answer.
const LINGER: Duration = Duration::from_secs(30);

/// A body that fails when it is waited for and nothing comes. One that nobody asks for has all the time there is, since
/// then it is not the client that is slow.
///
/// What is left of it when it is dropped is taken and thrown away: a connection that is closed on bytes nobody read is
/// reset, and a client that is still sending would not get to read why it need not.
pub(super) struct TimedBody<B: Discard> {
    /// There until it is dropped.
    body: Option<B>,
    patience: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
    /// Whether the client sends without being asked to: no `Expect`, or it was answered.
    is_coming: bool,
}

/// A body whose rest can be thrown away by a task.
pub(super) trait Discard: Body<Data = Bytes> + Unpin + Send + 'static {}

impl<B: Body<Data = Bytes> + Unpin + Send + 'static> Discard for B {}

impl<B: Discard> TimedBody<B> {
    /// Wraps a body; whether the client waits to be asked for it.
    pub(super) fn new(body: B, patience: Duration, is_awaited: bool) -> Self {
        Self {
            body: Some(body),
            patience,
            waiting: None,
            is_coming: !is_awaited,
        }
    }
}

impl<B: Discard> Drop for TimedBody<B> {
    fn drop(&mut self) {
        let Some(mut body) = self.body.take() else {
            return;
        };
        if !self.is_coming || body.is_end_stream() {
            return;
        }
        // Without a runtime the server is at its end, and so is the connection.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(tokio::time::timeout(LINGER, async move {
                while let Some(Ok(_)) = body.frame().await {}
            }));
        }
    }
}

impl<B> Body for TimedBody<B>
where
    B: Discard,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = &mut *self;
        let Some(body) = &mut this.body else {
            return Poll::Ready(None);
        };
        this.is_coming = true;
        if let Poll::Ready(frame) = Pin::new(body).poll_frame(context) {
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
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .as_ref()
            .map_or_else(SizeHint::default, Body::size_hint)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{StreamExt, stream};
    use http_body_util::StreamBody;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    /// A piece after each of these pauses.
    fn body(pauses: &'static [u64]) -> TimedBody<impl Discard<Error = Late>> {
        let pieces = stream::iter(pauses).then(|seconds| async move {
            tokio::time::sleep(Duration::from_secs(*seconds)).await;
            Ok::<_, Late>(Frame::data(Bytes::from_static(b"x")))
        });
        TimedBody::new(StreamBody::new(Box::pin(pieces)), PATIENCE, false)
    }

    #[tokio::test]
    async fn what_nobody_wants_is_still_taken_unless_it_waits_to_be_asked() {
        for is_awaited in [false, true] {
            let (sent, taken) = tokio::sync::mpsc::channel::<Bytes>(1);
            let pieces = stream::unfold(taken, |mut taken| async {
                let piece = taken.recv().await?;
                Some((Ok::<_, Late>(Frame::data(piece)), taken))
            });
            let pieces = Box::pin(pieces);
            drop(TimedBody::new(
                StreamBody::new(pieces),
                PATIENCE,
                is_awaited,
            ));
            let mut all = true;
            for _ in 0..100 {
                all &= sent.send(Bytes::from_static(b"x")).await.is_ok();
            }
            assert_eq!(all, !is_awaited);
        }
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
