//! `Expect: 100-continue`: the body is not asked for before the other side wants it.

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

/// How long the other side may keep silent before the body goes out all the same: some servers know nothing of `Expect`, and
/// programs themselves wait about as long.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 1 });

/// A request's body on its way out, from the moment on that it is wanted.
pub(super) struct OutgoingBody {
    /// None: the answer came before the body was wanted.
    inner: Option<Incoming>,
    is_wanted: Option<Pin<Box<dyn Future<Output = bool> + Send>>>,
}

/// Tells a body that waits that it is too late for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Expectation(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    news: Notify,
    is_answered: AtomicBool,
}

impl Expectation {
    /// The final answer is there. A body that has not been asked for will not be.
    pub(super) fn answered(&self) {
        self.0.is_answered.store(true, Ordering::Release);
        self.0.news.notify_one();
    }

    fn continued(&self) {
        self.0.news.notify_one();
    }

    /// Waits for news, and says whether the body is wanted.
    async fn wait(self) -> bool {
        // When nothing was heard at all, it is time as well.
        let _ = tokio::time::timeout(PATIENCE, self.0.news.notified()).await;
        !self.0.is_answered.load(Ordering::Acquire)
    }
}

/// Readies a request. If its program waits to be asked for the body, so do we: asking the program is what reading from its body
/// does.
pub(super) fn outgoing(request: Request<Incoming>) -> (Request<OutgoingBody>, Expectation) {
    let waits = request.version() == Version::HTTP_11 && expects(request.headers());
    let expectation = Expectation::default();
    let mut request = request.map(|inner| OutgoingBody {
        inner: Some(inner),
        is_wanted: None,
    });
    if waits {
        let heard = expectation.clone();
        hyper::ext::on_informational(&mut request, move |response| {
            if response.status() == StatusCode::CONTINUE {
                heard.continued();
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
                // The program is told by the end of its connection, after the answer.
                this.inner = None;
            }
            this.is_wanted = None;
        }
        match &mut this.inner {
            Some(inner) => Pin::new(inner).poll_frame(cx),
            // Neither more nor an end: an end would be that of a shorter body, and an error would take the answer with it.
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
