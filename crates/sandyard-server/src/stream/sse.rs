//! Server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use crate::prelude::*;

use axum::http::{HeaderMap, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;
use serde_json::json;

/// Time without events after which a comment is sent, so that proxies keep the connection open and lost clients are noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A response of events.
pub(super) fn respond<S>(events: S) -> Response
where
    S: Stream<Item = Result<Event, Infallible>> + Send + 'static,
{
    let mut response = Sse::new(events)
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
        .into_response();
    // Tells proxies not to buffer the response.
    response
        .headers_mut()
        .insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// An event with its data in JSON.
pub(super) fn event(name: &str, data: &impl Serialize) -> Event {
    let data = serde_json::to_string(data).expect("maps with texts for keys and plain values");
    Event::default().event(name).data(data)
}

/// A failure as the last event.
pub(super) fn failure(error: &ServiceError) -> Event {
    event(
        "error",
        &json!({"code": error.kind.code(), "detail": error.message, "hint": error.hint}),
    )
}

/// The failure of a stream that ends because the server shuts down.
pub(super) fn shutting_down(message: impl Into<String>) -> ServiceError {
    ServiceError::new(ErrorKind::Unavailable, message)
}

/// Says whether a client accepts events.
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    headers
        .get_all(axum::http::header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.to_ascii_lowercase().contains("text/event-stream"))
}

/// The last event that a reconnecting client has received.
pub(super) fn last_event_id<T: std::str::FromStr>(headers: &HeaderMap) -> Option<T> {
    headers
        .get("last-event-id")?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()
}
