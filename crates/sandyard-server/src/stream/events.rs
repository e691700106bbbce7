//! Events of sandboxes as they happen. The native dialect lists past ones.

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::http::HeaderMap;
use axum::response::sse as axum_sse;
use futures_util::{Stream, stream};
use sandyard_service::{Event, EventFilter};

use super::sse;
use crate::listen::Shutdown;
use crate::prelude::*;

/// Events that are read at once.
const BATCH: usize = 1_000;

/// An event in the form in which a following client gets it.
pub(crate) struct StreamedEvent(axum_sse::Event);

impl StreamedEvent {
    /// The event `seq` of this kind, with its data.
    pub(crate) fn new(seq: i64, kind: &str, data: &impl Serialize) -> Self {
        Self(sse::event(kind, data).id(seq.to_string()))
    }
}

/// Streams the events that `filter` selects and all later ones, each named by its kind. `Last-Event-ID` continues after an event.
/// `view` converts an event, or leaves it out.
pub(crate) async fn follow_events<V>(
    call: Call,
    mut filter: EventFilter,
    view: V,
    headers: &HeaderMap,
    shutdown: Shutdown,
) -> ApiResult<Response>
where
    V: Fn(Event) -> Option<StreamedEvent> + Send + Sync + 'static,
{
    if let Some(last) = sse::last_event_id(headers) {
        filter.after_seq = Some(last);
        filter.is_tail = false;
    }
    let events = call.service().events(&call.caller, filter.clone()).await?;
    let mut follower = Follower {
        call,
        view,
        ready: VecDeque::new(),
        filter: EventFilter {
            is_tail: false,
            after_seq: Some(filter.after_seq.unwrap_or(0)),
            limit: BATCH,
            ..filter
        },
        shutdown,
    };
    follower.take(events);
    Ok(sse::respond(follower.into_events()))
}

/// A client that follows events.
struct Follower<V> {
    call: Call,
    view: V,
    ready: VecDeque<StreamedEvent>,
    /// Selects the events after the last one that was read.
    filter: EventFilter,
    shutdown: Shutdown,
}

impl<V: Fn(Event) -> Option<StreamedEvent> + Send + Sync + 'static> Follower<V> {
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

    async fn next(&mut self) -> Option<StreamedEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let service = self.call.service();
            tokio::select! {
                () = service.wait_for_events() => {}
                () = self.shutdown.wait() => return None,
            }
            // A short failure of the database is not reported to the client.
            if let Ok(events) = service.events(&self.call.caller, self.filter.clone()).await {
                self.take(events);
            }
        }
    }
}
