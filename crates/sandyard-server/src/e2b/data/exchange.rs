//! Answers under way, and their end when their sandbox is gone or the server ends.
//!
//! A sandbox that ends takes its connections along; one that is paused does not, and a client would wait for as long as it
//! rests. So whoever has an answer under way is looked after: once a second every such sandbox is looked up.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use sandyard_core::{SandboxId, SandboxStatus};
use sandyard_preview::{BoxError, PreviewBody};
use tokio_util::sync::CancellationToken;

use super::find;
use super::relay::Relay;
use crate::app::App;
use crate::listen::Ending;

/// Between two looks at the same sandbox.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Added for every sandbox to be looked at, so that many do not keep the store busy.
const PER_SANDBOX: Duration = Duration::from_millis(1);

/// All answers under way. Clones are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exchanges(Arc<Mutex<Open>>);

#[derive(Debug, Default)]
struct Open {
    by_sandbox: HashMap<SandboxId, Entry>,
    is_watched: bool,
}

#[derive(Debug)]
struct Entry {
    count: usize,
    over: CancellationToken,
}

/// One answer under way.
#[derive(Debug)]
pub(crate) struct Exchange {
    all: Exchanges,
    id: SandboxId,
    over: CancellationToken,
}

impl Exchanges {
    /// Notes an answer under way.
    pub(crate) fn begin(&self, app: &App, id: &SandboxId) -> Exchange {
        let mut open = self.lock();
        let entry = open.by_sandbox.entry(id.clone()).or_insert_with(|| Entry {
            count: 0,
            over: CancellationToken::new(),
        });
        entry.count += 1;
        let over = entry.over.clone();
        if !std::mem::replace(&mut open.is_watched, true) {
            tokio::spawn(watch(self.clone(), app.clone()));
        }
        Exchange {
            all: self.clone(),
            id: id.clone(),
            over,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the sandboxes to look at; none: nobody has to look any more.
    fn watched(&self) -> Option<Vec<SandboxId>> {
        let mut open = self.lock();
        if open.by_sandbox.is_empty() {
            open.is_watched = false;
            return None;
        }
        Some(open.by_sandbox.keys().cloned().collect())
    }

    /// Ends all answers of a sandbox; later ones are not concerned.
    fn end(&self, id: &SandboxId) {
        if let Some(entry) = self.lock().by_sandbox.remove(id) {
            entry.over.cancel();
        }
    }
}

impl Exchange {
    /// Works until the sandbox is gone; none then.
    pub(crate) async fn unless_over<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.over.cancelled() => None,
        }
    }

    /// Gives an answer whose body breaks off when the sandbox is gone, or, if it is one without end, when the server ends.
    pub(crate) fn carry(
        self,
        response: Response<PreviewBody>,
        ending: Option<Ending>,
        relay: Option<Relay>,
    ) -> Response {
        let (head, inner) = response.into_parts();
        let ending = ending.filter(|_| is_endless(&head.headers));
        let over = self.over.clone();
        let stop = async move {
            match ending {
                Some(ending) => tokio::select! {
                    () = over.cancelled() => {}
                    () = ending.wait() => {}
                },
                None => over.cancelled().await,
            }
        };
        let body = Carried {
            inner,
            stop: Box::pin(stop),
            relay,
            is_whole: false,
            _exchange: self,
        };
        Response::from_parts(head, Body::new(body))
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let mut open = self.all.lock();
        // An entry of the same name may be a later one.
        let is_last = match open.by_sandbox.get_mut(&self.id) {
            Some(entry) if !self.over.is_cancelled() => {
                entry.count -= 1;
                entry.count == 0
            }
            _ => false,
        };
        if is_last {
            open.by_sandbox.remove(&self.id);
        }
    }
}

/// Says whether an answer goes on for as long as its client likes.
fn is_endless(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .and_then(|kind| kind.split(';').next())
        .unwrap_or_default();
    ["application/connect+json", "text/event-stream"]
        .iter()
        .any(|endless| kind.trim().eq_ignore_ascii_case(endless))
}

/// Looks after all sandboxes with answers under way until there are none.
async fn watch(exchanges: Exchanges, app: App) {
    while let Some(ids) = exchanges.watched() {
        let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        tokio::time::sleep(LOOK_EVERY + PER_SANDBOX.saturating_mul(count)).await;
        for id in ids {
            // A store that cannot be asked says nothing about the sandbox.
            if let Ok(row) = find(&app, id.as_str()).await
                && !row.is_some_and(|row| is_up(row.status))
            {
                exchanges.end(&id);
            }
        }
    }
}

fn is_up(status: SandboxStatus) -> bool {
    matches!(status, SandboxStatus::Running | SandboxStatus::Creating)
}

/// An answer's body that can be broken off.
struct Carried {
    inner: PreviewBody,
    stop: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Gone when there is nothing to be said.
    relay: Option<Relay>,
    is_whole: bool,
    _exchange: Exchange,
}

impl Drop for Carried {
    /// Nobody drops it but who has sent it all, or has no client any more.
    fn drop(&mut self) {
        if let Some(relay) = self.relay.take() {
            relay.say(self.is_whole);
        }
    }
}

impl http_body::Body for Carried {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        // First: an answer that never pauses would never be asked.
        if self.stop.as_mut().poll(context).is_ready() {
            // What the connection still holds may be lost with it.
            self.relay = None;
            // Not an end: the client would take the answer for whole.
            return Poll::Ready(Some(Err("the sandbox or the server ended".into())));
        }
        let frame = Pin::new(&mut self.inner).poll_frame(context);
        match &frame {
            Poll::Ready(None) => self.is_whole = true,
            Poll::Ready(Some(Err(_))) => self.relay = None,
            _ => {}
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
