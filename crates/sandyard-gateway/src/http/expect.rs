//! `Expect: 100-continue`: the program's body is requested only when the remote side wants it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::EXPECT;
use http::{HeaderMap, Request, StatusCode, Version};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::Notify;

/// How long the remote side may be silent before the body is sent anyway: some servers ignore `Expect`, and programs themselves
/// wait about as long.
const CONTINUE_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 1 });

/// A request's body, which starts when the remote side wants it.
pub(super) struct OutgoingBody {
    /// `None`: the response came before the body was wanted.
    inner: Option<Incoming>,
    is_wanted: Option<Pin<Box<dyn Future<Output = bool> + Send>>>,
}

/// Notifies a waiting body that it is wanted, or too late.
#[derive(Clone, Debug, Default)]
pub(super) struct Expectation(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    changed: Notify,
    is_answered: AtomicBool,
}

impl Expectation {
    /// Notes the final response. A body that has not been requested is not sent any more.
    pub(super) fn answered(&self) {
        self.0.is_answered.store(true, Ordering::Release);
        self.0.changed.notify_one();
    }

    fn continued(&self) {
        self.0.changed.notify_one();
    }

    /// Waits for a decision; returns whether the body is wanted.
    async fn wait(self) -> bool {
        // Without any response in time, the body is sent.
        let _ = tokio::time::timeout(CONTINUE_TIMEOUT, self.0.changed.notified()).await;
        !self.0.is_answered.load(Ordering::Acquire)
    }
}

/// Prepares a request. If its program waits for a `100 Continue`, the body waits, too: reading the body makes hyper send it.
pub(super) fn outgoing(request: Request<Incoming>) -> (Request<OutgoingBody>, Expectation) {
    let waits = request.version() == Version::HTTP_11 && expects(request.headers());
    let expectation = Expectation::default();
    let mut request = request.map(|inner| OutgoingBody {
        inner: Some(inner),
        is_wanted: None,
    });
    if waits {
        let continuation = expectation.clone();
        hyper::ext::on_informational(&mut request, move |response| {
            if response.status() == StatusCode::CONTINUE {
                continuation.continued();
            }
        });
        request.body_mut().is_wanted = Some(Box::pin(expectation.clone().wait()));
    }
    (request, expectation)
}

fn expects(headers: &HeaderMap) -> bool {
    let expected = headers.get(EXPECT);
    expected.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

impl fmt::Debug for OutgoingBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OutgoingBody").field(&self.inner).finish()
    }
}

impl http_body::Body for OutgoingBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        if let Some(is_wanted) = &mut this.is_wanted {
            if !ready!(is_wanted.as_mut().poll(cx)) {
                // The program notices it by the end of its connection, after the response.
                this.inner = None;
            }
            this.is_wanted = None;
        }
        match &mut this.inner {
            Some(inner) => Pin::new(inner).poll_frame(cx),
            // Neither data nor an end: an end would mean a shorter body, and an error would drop the response.
            None => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner
            .as_ref()
            .is_some_and(http_body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let inner = self.inner.as_ref();
        inner.map(http_body::Body::size_hint).unwrap_or_default()
    }
}
