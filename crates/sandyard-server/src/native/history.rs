//! `GET /sandboxes/{id}/events` and `/sandboxes/{id}/metrics`.

use axum::http::HeaderMap;
use sandyard_core::SandboxId;
use sandyard_provider::Usage;
use sandyard_service::{Event, EventFilter};
use serde_json::Value;

use crate::listen::Shutdown;
use crate::prelude::*;
use crate::stream::{self, StreamedEvent};

/// Query of a list of events.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventQuery {
    /// Return only events with a greater `seq`. Default: the newest events.
    #[param(inline)]
    after: Option<BoundedInt<0, 9_007_199_254_740_991>>,
    /// Maximum number of results, 1–1000 (default 100).
    #[param(inline)]
    limit: Option<BoundedInt<1, 1000>>,
    /// Whether to stream new events as server-sent events (default false).
    follow: Option<bool>,
}

/// Event in the life of a sandbox.
#[derive(Serialize, ToSchema)]
pub(crate) struct EventView {
    /// Sequence number, increasing over all sandboxes of the server.
    pub(crate) seq: i64,
    /// ID of the sandbox.
    pub(crate) sandbox_id: String,
    /// Time of the event (RFC 3339).
    pub(crate) at: String,
    /// Kind of event: `created`, `running`, `paused`, `stopped`, `deleted` and so on.
    pub(crate) kind: String,
    /// User who caused the event, or `system`.
    pub(crate) actor: String,
    /// Details, depending on the kind.
    #[schema(value_type = Object)]
    pub(crate) data: Value,
}

impl From<Event> for EventView {
    fn from(event: Event) -> Self {
        Self {
            seq: event.seq,
            sandbox_id: event.sandbox_id.to_string(),
            at: iso(event.at_ms),
            kind: event.kind,
            actor: event.actor,
            data: match event.data {
                Value::Object(data) => Value::Object(data),
                _ => Value::Object(serde_json::Map::new()),
            },
        }
    }
}

/// Events of a sandbox.
#[derive(Serialize, ToSchema)]
pub(crate) struct EventList {
    /// Events, oldest first.
    events: Vec<EventView>,
}

/// List events of all sandboxes
///
/// Returns what happened to the caller's sandboxes, oldest first; for an admin, to those of every user. Includes deleted
/// sandboxes.
///
/// With `follow=true`, or with the header `Accept: text/event-stream`, the response is a stream of server-sent events
/// named by their kind. To continue a broken stream, send the last received event ID in `Last-Event-ID`.
#[utoipa::path(
    get, path = "/events", tag = "monitoring", params(EventQuery),
    responses((status = 200, description = "Events returned, or streamed as they happen.", content(
        (EventList = "application/json"), (String = "text/event-stream"))))
)]
pub(crate) async fn list_all_events(
    call: Call,
    Query(query): Query<EventQuery>,
    shutdown: Shutdown,
    headers: HeaderMap,
) -> ApiResult<Response> {
    answer(call, None, query, shutdown, &headers).await
}

/// List events of a sandbox
///
/// Returns what happened to a sandbox, oldest first: created, paused, resumed, deleted and so on. Works after its
/// deletion too, and does not wake it.
///
/// With `follow=true`, or with the header `Accept: text/event-stream`, the response is a stream of server-sent events
/// named by their kind. To continue a broken stream, send the last received event ID in `Last-Event-ID`.
#[utoipa::path(
    get, path = "/sandboxes/{id}/events", tag = "monitoring", params(SandboxName, EventQuery),
    responses((status = 200, description = "Events returned, or streamed as they happen.", content(
        (EventList = "application/json"), (String = "text/event-stream"))))
)]
pub(crate) async fn list_events(
    call: Call,
    name: SandboxName,
    Query(query): Query<EventQuery>,
    shutdown: Shutdown,
    headers: HeaderMap,
) -> ApiResult<Response> {
    let sandbox = call.inspect(&name.id).await?;
    answer(call, Some(sandbox.id), query, shutdown, &headers).await
}

/// Lists or streams events, of one sandbox or of all that the caller can see.
async fn answer(
    call: Call,
    sandbox_id: Option<SandboxId>,
    query: EventQuery,
    shutdown: Shutdown,
    headers: &HeaderMap,
) -> ApiResult<Response> {
    let filter = EventFilter {
        sandbox_id,
        after_seq: query.after.map(|after| after.0),
        is_tail: query.after.is_none(),
        limit: query.limit.map_or(100, |limit| limit.0 as usize),
        ..EventFilter::default()
    };
    if query.follow.unwrap_or(false) || stream::wants_events(headers) {
        let view = |event: Event| {
            let event = EventView::from(event);
            Some(StreamedEvent::new(event.seq, &event.kind, &event))
        };
        return stream::follow_events(call, filter, view, headers, shutdown).await;
    }
    let events = call.service().events(&call.caller, filter).await?;
    let events = events.into_iter().map(EventView::from).collect();
    Ok(Json(EventList { events }).into_response())
}

/// Current resource usage of a sandbox. A value that the provider does not measure is null.
#[derive(Serialize, ToSchema)]
pub(crate) struct UsageReply {
    /// ID of the sandbox.
    sandbox_id: String,
    #[serde(flatten)]
    usage: Usage,
}

/// Get current resource usage
///
/// Returns what a sandbox uses at this moment. Does not wake the sandbox and does not count as activity.
#[utoipa::path(
    get, path = "/sandboxes/{id}/metrics", tag = "monitoring", params(SandboxName),
    responses((status = 200, description = "Resource usage returned.", body = UsageReply))
)]
pub(crate) async fn get_sandbox_metrics(call: Call, name: SandboxName) -> Reply<UsageReply> {
    let sandbox = call.inspect(&name.id).await?;
    let service = call.service();
    let usage = service.usage(&call.caller, sandbox.id.as_str()).await?;
    Ok(Json(UsageReply {
        sandbox_id: sandbox.id.to_string(),
        usage,
    }))
}
