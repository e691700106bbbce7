//! Bodies of requests whose client stops sending, or that the handler does not read.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::time::Sleep;

use crate::error::chain;

/// The client sent nothing of an announced body for too long.
#[derive(Debug, thiserror::Error)]
#[error("no more of the body was received in time")]
pub(crate) struct BodyTimeout;

/// Says whether an error or one of its causes is a [`BodyTimeout`].
pub(crate) fn is_body_timeout(error: &(dyn Error + 'static)) -> bool {
    chain(error).any(|error| error.is::<BodyTimeout>())
}

/// How long the rest of a body is read after its response.
const LINGER: Duration = Duration::from_secs(30);

/// A body that fails when the handler waits for it and nothing arrives. While the handler does not read it, no time is counted: the
/// client is not the slow one.
///
/// When it is dropped, the rest is read and discarded: the kernel resets a connection that is closed with unread bytes, and a client
/// that is still sending would not get to read the response.
pub(super) struct TimedBody<B: Discard> {
    /// None once this is dropped.
    body: Option<B>,
    timeout: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
    /// Whether the client sends the body: it sent no `Expect`, or the server has answered it.
    is_sending: bool,
}

/// A body whose rest a task can discard.
pub(super) trait Discard: Body<Data = Bytes> + Unpin + Send + 'static {}

impl<B: Body<Data = Bytes> + Unpin + Send + 'static> Discard for B {}

impl<B: Discard> TimedBody<B> {
    /// Wraps a body. `is_expecting`: the client sends it only after the server has answered `Expect`.
    pub(super) fn new(body: B, timeout: Duration, is_expecting: bool) -> Self {
        Self {
            body: Some(body),
            timeout,
            waiting: None,
            is_sending: !is_expecting,
        }
    }
}

impl<B: Discard> Drop for TimedBody<B> {
    fn drop(&mut self) {
        let Some(mut body) = self.body.take() else {
            return;
        };
        if !self.is_sending || body.is_end_stream() {
            return;
        }
        // Without a runtime the server has ended, and so has the connection.
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
        this.is_sending = true;
        if let Poll::Ready(frame) = Pin::new(body).poll_frame(context) {
            this.waiting = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let timeout = this.timeout;
        let waiting = this
            .waiting
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        waiting
            .as_mut()
            .poll(context)
            .map(|()| Some(Err(BodyTimeout.into())))
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

    const TIMEOUT: Duration = Duration::from_secs(30);

    /// A chunk after each of these pauses, in seconds.
    fn body(pauses: &'static [u64]) -> TimedBody<impl Discard<Error = BodyTimeout>> {
        let pieces = stream::iter(pauses).then(|seconds| async move {
            tokio::time::sleep(Duration::from_secs(*seconds)).await;
            Ok::<_, BodyTimeout>(Frame::data(Bytes::from_static(b"x")))
        });
        TimedBody::new(StreamBody::new(Box::pin(pieces)), TIMEOUT, false)
    }

    #[tokio::test]
    async fn an_unread_body_is_discarded_unless_its_client_waits_for_the_answer_to_expect() {
        for is_expecting in [false, true] {
            let (sent, taken) = tokio::sync::mpsc::channel::<Bytes>(1);
            let pieces = stream::unfold(taken, |mut taken| async {
                let piece = taken.recv().await?;
                Some((Ok::<_, BodyTimeout>(Frame::data(piece)), taken))
            });
            let pieces = Box::pin(pieces);
            drop(TimedBody::new(
                StreamBody::new(pieces),
                TIMEOUT,
                is_expecting,
            ));
            let mut all = true;
            for _ in 0..100 {
                all &= sent.send(Bytes::from_static(b"x")).await.is_ok();
            }
            assert_eq!(all, !is_expecting);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_body_is_read_and_one_that_stops_fails() {
        let whole = body(&[29, 29, 29]).collect().await.unwrap();
        assert_eq!(whole.to_bytes(), "xxx");
        let error = body(&[1, 31]).collect().await.unwrap_err();
        assert!(is_body_timeout(&*error));
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_is_found_among_the_causes_of_an_error() {
        let body = axum::body::Body::new(body(&[31]));
        let error = axum::body::to_bytes(body, 10).await.unwrap_err();
        assert!(is_body_timeout(&std::io::Error::other(error)));
        assert!(!is_body_timeout(&std::io::Error::other("else")));
    }
}
