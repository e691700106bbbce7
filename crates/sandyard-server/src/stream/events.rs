//! What happens to a sandbox from now on. What happened is told by the native dialect.

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::http::HeaderMap;
use axum::response::{Response, sse as axum_sse};
use futures_util::{Stream, stream};
use sandyard_core::Caller;
use sandyard_service::EventFilter;

use super::sse;
use crate::app::App;
use crate::error::ApiError;
use crate::listen::Ending;
use crate::native::history::EventView;

/// Events asked for at a time.
const BATCH: usize = 1_000;

/// Answers with the events that `filter` names and all that follow, each named by its kind. `Last-Event-ID` goes on after
/// one.
pub(crate) async fn follow_events(
    app: App,
    caller: Caller,
    mut filter: EventFilter,
    headers: &HeaderMap,
    ending: Ending,
) -> Result<Response, ApiError> {
    if let Some(last) = sse::last_event_id(headers) {
        filter.after_seq = Some(last);
        filter.is_tail = false;
    }
    let events = app.service().events(&caller, filter.clone()).await?;
    let follower = Follower {
        app,
        caller,
        ready: events.into_iter().map(EventView::from).collect(),
        filter: EventFilter {
            is_tail: false,
            after_seq: Some(filter.after_seq.unwrap_or(0)),
            limit: BATCH,
            ..filter
        },
        ending,
    };
    Ok(sse::respond(follower.into_events()))
}

/// A client that follows.
struct Follower {
    app: App,
    caller: Caller,
    ready: VecDeque<EventView>,
    /// Asks for what comes after the last event the client has.
    filter: EventFilter,
    ending: Ending,
}

impl Follower {
    fn into_events(self) -> impl Stream<Item = Result<axum_sse::Event, Infallible>> + Send {
        stream::unfold(self, |mut follower| async move {
            let event = follower.next().await?;
            let said = sse::event(&event.kind, &event).id(event.seq.to_string());
            Some((Ok(said), follower))
        })
    }

    async fn next(&mut self) -> Option<EventView> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.filter.after_seq = Some(event.seq);
                return Some(event);
            }
            let service = self.app.service();
            tokio::select! {
                () = service.wait_for_events() => {}
                () = self.ending.wait() => return None,
            }
            // The database may be away for a moment; the client need not know.
            if let Ok(events) = service.events(&self.caller, self.filter.clone()).await {
                self.ready = events.into_iter().map(EventView::from).collect();
            }
        }
    }
}
