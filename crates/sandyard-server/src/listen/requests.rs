//! The requests in progress of one connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::watch;

/// Counts requests in progress. Clones share the count.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests(Arc<watch::Sender<usize>>);

impl Requests {
    /// Counts a request until the body of its response is dropped.
    pub(super) fn count<E, F>(
        &self,
        response: F,
    ) -> impl Future<Output = Result<Response, E>> + use<E, F>
    where
        F: Future<Output = Result<Response, E>>,
    {
        self.0.send_modify(|count| *count += 1);
        let guard = RequestGuard(Arc::clone(&self.0));
        async move {
            let response = response.await?;
            Ok(response.map(|inner| {
                Body::new(GuardedBody {
                    inner,
                    _guard: guard,
                })
            }))
        }
    }

    /// Waits until there has been no request for a while.
    pub(super) async fn idle_for(&self, time: Duration) {
        let mut count = self.0.subscribe();
        loop {
            // The sender lives in `self`.
            let _ = count.wait_for(|count| *count == 0).await;
            if tokio::time::timeout(time, count.changed()).await.is_err() {
                return;
            }
        }
    }
}

/// One request in progress.
struct RequestGuard(Arc<watch::Sender<usize>>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// The body of a response to a counted request.
struct GuardedBody {
    inner: Body,
    _guard: RequestGuard,
}

impl http_body::Body for GuardedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.inner).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_after_its_last_response() {
        let requests = Requests::default();
        let time = Duration::from_secs(30);
        let started = tokio::time::Instant::now();
        let counting = requests.count(async { Ok::<_, ()>(Response::new(Body::empty())) });
        let response = counting.await.unwrap();
        let ended = tokio::time::sleep(time * 3);
        let (_, ()) = tokio::join!(
            async {
                ended.await;
                drop(response);
            },
            requests.idle_for(time)
        );
        assert_eq!(started.elapsed().as_secs(), 120);
    }
}
