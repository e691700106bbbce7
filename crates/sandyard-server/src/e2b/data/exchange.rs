//! Responses in progress, which end when their sandbox stops running or the server shuts down.
//!
//! The connections of a sandbox end when its processes do, but not when it is paused: its clients would wait until it is
//! resumed. So a task watches every sandbox with a response in progress. The service announces the changes that this node
//! makes; a slow poll finds those of other nodes, and owners that were disabled.

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
use sandyard_core::SandboxId;
use sandyard_preview::{BoxError, PreviewBody};
use sandyard_service::StatusChange;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::relay::Relay;
use crate::app::App;
use crate::listen::Shutdown;
use crate::visibility::find_visible;

/// Pause between two polls of the store for changes that other nodes made.
const POLL_EVERY: Duration = Duration::from_secs(2);

/// Added to the pause for every watched sandbox, so that many do not keep the store busy.
const POLL_PER_SANDBOX: Duration = Duration::from_millis(1);

/// All responses in progress. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exchanges(Arc<Mutex<Open>>);

#[derive(Debug, Default)]
struct Open {
    by_sandbox: HashMap<SandboxId, Entry>,
    is_watched: bool,
}

/// The responses of one sandbox.
#[derive(Debug)]
struct Entry {
    count: usize,
    ended: CancellationToken,
}

/// One response in progress.
#[derive(Debug)]
pub(crate) struct Exchange {
    all: Exchanges,
    id: SandboxId,
    ended: CancellationToken,
}

impl Exchanges {
    /// Registers a response, and starts the watcher with the first one.
    pub(crate) fn begin(&self, app: &App, id: &SandboxId) -> Exchange {
        let mut open = self.lock();
        let entry = open.by_sandbox.entry(id.clone()).or_insert_with(|| Entry {
            count: 0,
            ended: CancellationToken::new(),
        });
        entry.count += 1;
        let ended = entry.ended.clone();
        if !std::mem::replace(&mut open.is_watched, true) {
            let changes = app.service().subscribe_status();
            tokio::spawn(watch(self.clone(), app.clone(), changes));
        }
        Exchange {
            all: self.clone(),
            id: id.clone(),
            ended,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sandboxes with responses in progress; none: the watcher ends.
    fn watched(&self) -> Option<Vec<SandboxId>> {
        let mut open = self.lock();
        if open.by_sandbox.is_empty() {
            open.is_watched = false;
            return None;
        }
        Some(open.by_sandbox.keys().cloned().collect())
    }

    fn has(&self, id: &SandboxId) -> bool {
        self.lock().by_sandbox.contains_key(id)
    }

    /// Ends the responses of a sandbox that are in progress; later ones are not affected.
    fn end(&self, id: &SandboxId) {
        if let Some(entry) = self.lock().by_sandbox.remove(id) {
            entry.ended.cancel();
        }
    }
}

impl Exchange {
    /// Runs `work`, unless the sandbox stops running before; none then.
    pub(crate) async fn until_ended<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            () = self.ended.cancelled() => None,
        }
    }

    /// A response whose body breaks off when the sandbox stops running, and an endless body also when the server shuts down.
    pub(crate) fn carry(
        self,
        response: Response<PreviewBody>,
        shutdown: Option<Shutdown>,
        relay: Option<Relay>,
    ) -> Response {
        let (head, inner) = response.into_parts();
        let shutdown = shutdown.filter(|_| is_endless(&head.headers));
        let ended = self.ended.clone();
        let stop = async move {
            match shutdown {
                Some(shutdown) => tokio::select! {
                    () = ended.cancelled() => {}
                    () = shutdown.wait() => {}
                },
                None => ended.cancelled().await,
            }
        };
        let body = Carried {
            inner,
            stop: Box::pin(stop),
            relay,
            is_complete: false,
            _exchange: self,
        };
        Response::from_parts(head, Body::new(body))
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let mut open = self.all.lock();
        // After `end` the entry of this sandbox, if there is one, belongs to later responses.
        let is_last = match open.by_sandbox.get_mut(&self.id) {
            Some(entry) if !self.ended.is_cancelled() => {
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

/// Says whether a response lasts as long as its client wants.
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

/// Watches all sandboxes with responses in progress until there are none.
async fn watch(exchanges: Exchanges, app: App, mut changes: Receiver<StatusChange>) {
    let mut count = 0;
    loop {
        let poll_at = Instant::now() + POLL_EVERY + POLL_PER_SANDBOX.saturating_mul(count);
        follow_changes(&exchanges, &app, &mut changes, poll_at).await;
        // Read after the changes: a response that began meanwhile may have missed the announcement.
        let Some(ids) = exchanges.watched() else {
            return;
        };
        count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        for id in ids {
            end_unless_up(&exchanges, &app, &id).await;
        }
    }
}

/// Ends the responses of sandboxes that stop running on this node, until `poll_at` or until changes were missed.
async fn follow_changes(
    exchanges: &Exchanges,
    app: &App,
    changes: &mut Receiver<StatusChange>,
    poll_at: Instant,
) {
    loop {
        let change = tokio::select! {
            change = changes.recv() => change,
            () = sleep_until(poll_at) => return,
        };
        match change {
            // The change may be old: the sandbox may run again, with other responses.
            Ok(change) if !change.status.is_up() && exchanges.has(&change.id) => {
                end_unless_up(exchanges, app, &change.id).await;
            }
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => return sleep_until(poll_at).await,
        }
    }
}

/// Ends the responses of a sandbox that does not run.
async fn end_unless_up(exchanges: &Exchanges, app: &App, id: &SandboxId) {
    // A store that cannot be read says nothing about the sandbox.
    if let Ok(row) = find_visible(app, id.as_str()).await
        && !row.is_some_and(|row| row.status.is_up())
    {
        exchanges.end(id);
    }
}

/// The body of a response that can be broken off.
struct Carried {
    inner: PreviewBody,
    stop: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// `None` once the agent must not learn that the output was delivered.
    relay: Option<Relay>,
    is_complete: bool,
    _exchange: Exchange,
}

impl Drop for Carried {
    /// The body is dropped after it was sent completely, or when its client has gone.
    fn drop(&mut self) {
        if let Some(relay) = self.relay.take() {
            relay.confirm(self.is_complete);
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
        // Checked first, because a body that always has data would never get to a later check.
        if self.stop.as_mut().poll(context).is_ready() {
            // Output that is still in the connection may be lost.
            self.relay = None;
            // An error, because a client would take a plain end for a complete response.
            return Poll::Ready(Some(Err("the sandbox or the server ended".into())));
        }
        let frame = Pin::new(&mut self.inner).poll_frame(context);
        match &frame {
            Poll::Ready(None) => self.is_complete = true,
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
