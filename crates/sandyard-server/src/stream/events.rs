//! What happens to a sandbox from now on. What happened is told by the native dialect.

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::http::HeaderMap;
use axum::response::{Response, sse as axum_sse};
use futures_util::{Stream, stream};
use sandyard_core::Caller;
use sandyard_service::{Event, EventFilter};
use serde::Serialize;

use super::sse;
use crate::app::App;
use crate::error::ApiError;
use crate::listen::Ending;

/// Events asked for at a time.
const BATCH: usize = 1_000;

/// An event as a client that follows gets it.
pub(crate) struct Followed(axum_sse::Event);

impl Followed {
    /// What a client is told of the event `seq` of this kind.
    pub(crate) fn new(seq: i64, kind: &str, data: &impl Serialize) -> Self {
        Self(sse::event(kind, data).id(seq.to_string()))
    }
}

/// Answers with the events that `filter` names and all that follow, each named by its kind. `Last-Event-ID` goes on after
/// one. `view` says what a client is told of an event, or that it is told nothing.
pub(crate) async fn follow_events<V>(
    app: App,
    caller: Caller,
    mut filter: EventFilter,
    view: V,
    headers: &HeaderMap,
    ending: Ending,
) -> Result<Response, ApiError>
where
    V: Fn(Event) -> Option<Followed> + Send + Sync + 'static,
{
    if let Some(last) = sse::last_event_id(headers) {
        filter.after_seq = Some(last);
        filter.is_tail = false;
    }
    let events = app.service().events(&caller, filter.clone()).await?;
    let mut follower = Follower {
        app,
        caller,
        view,
        ready: VecDeque::new(),
        filter: EventFilter {
            is_tail: false,
            after_seq: Some(filter.after_seq.unwrap_or(0)),
            limit: BATCH,
            ..filter
        },
        ending,
    };
    follower.take(events);
    Ok(sse::respond(follower.into_events()))
}

/// A client that follows.
struct Follower<V> {
    app: App,
    caller: Caller,
    view: V,
    ready: VecDeque<Followed>,
    /// Asks for what comes after the last event that was looked at.
    filter: EventFilter,
    ending: Ending,
}

impl<V: Fn(Event) -> Option<Followed> + Send + Sync + 'static> Follower<V> {
    fn into_events(self) -> impl Stream<Item = Result<axum_sse::Event, Infallible>> + Send {
        stream::unfold(self, |mut follower| async move {
            let event = follower.next().await?;
            Some((Ok(event.0), follower))
        })
    }

    fn take(&mut self, events: Vec<Event>) {
        if let Some(last) = events.last() {
            self.filter.after_seq = Some(last.seq);
        }
        self.ready = events.into_iter().filter_map(&self.view).collect();
    }

    async fn next(&mut self) -> Option<Followed> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let service = self.app.service();
            tokio::select! {
                () = service.wait_for_events() => {}
                () = self.ending.wait() => return None,
            }
            // The database may be away for a moment; the client need not know.
            if let Ok(events) = service.events(&self.caller, self.filter.clone()).await {
                self.take(events);
            }
        }
    }
}
