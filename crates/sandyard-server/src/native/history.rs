//! `GET /sandboxes/{id}/events` and `/sandboxes/{id}/metrics`.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use sandyard_provider::Usage;
use sandyard_service::{Event, EventFilter};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use crate::access::Authenticated;
use crate::app::App;
use crate::bounds::Whole;
use crate::error::ApiError;
use crate::extract::{Query, SandboxName};
use crate::listen::Shutdown;
use crate::stream::{self, StreamedEvent};
use crate::time::iso;

/// Which events.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventQuery {
    /// Only those after this `seq`; left out: the newest.
    #[param(inline)]
    after: Option<Whole<0, 9_007_199_254_740_991>>,
    /// At most so many.
    #[param(inline)]
    limit: Option<Whole<1, 1000>>,
    /// Whether to go on with events as they happen, as server-sent events.
    follow: Option<bool>,
}

/// Something that happened to a sandbox.
#[derive(Serialize, ToSchema)]
pub(crate) struct EventView {
    /// Counts up over all sandboxes.
    pub(crate) seq: i64,
    pub(crate) sandbox_id: String,
    /// When.
    pub(crate) at: String,
    /// What: `created`, `running`, `paused`, …
    pub(crate) kind: String,
    /// Who did it: a user's name or `system`.
    pub(crate) actor: String,
    /// More about it.
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

/// What happened to a sandbox.
#[derive(Serialize, ToSchema)]
pub(crate) struct EventList {
    /// Oldest first.
    events: Vec<EventView>,
}

/// Tells what happened to a sandbox, also after its deletion.
///
/// With `follow=true`, or when the client accepts `text/event-stream`, events come as they happen, each named by its kind;
/// `Last-Event-ID` goes on after one.
#[utoipa::path(
    get, path = "/sandboxes/{id}/events", operation_id = "list_events", tag = "monitoring",
    params(SandboxName, EventQuery),
    responses((status = 200, description = "What happened.", content(
        (EventList = "application/json"), (String = "text/event-stream"))))
)]
pub(crate) async fn list_events(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    name: SandboxName,
    Query(query): Query<EventQuery>,
    shutdown: Shutdown,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let sandbox = app.service().inspect(&caller, &name.id).await?;
    let filter = EventFilter {
        sandbox_id: Some(sandbox.id),
        after_seq: query.after.map(|after| after.0),
        is_tail: query.after.is_none(),
        limit: query.limit.map_or(100, |limit| limit.0 as usize),
        ..EventFilter::default()
    };
    if query.follow.unwrap_or(false) || stream::wants_events(&headers) {
        let view = |event: Event| {
            let event = EventView::from(event);
            Some(StreamedEvent::new(event.seq, &event.kind, &event))
        };
        return stream::follow_events(app, caller, filter, view, &headers, shutdown).await;
    }
    let events = app.service().events(&caller, filter).await?;
    let events = events.into_iter().map(EventView::from).collect();
    Ok(Json(EventList { events }).into_response())
}

/// What a sandbox uses now. What its provider does not count is none.
#[derive(Serialize, ToSchema)]
pub(crate) struct UsageReply {
    sandbox_id: String,
    /// Memory in bytes, page cache included.
    memory_bytes: Option<u64>,
    /// Page cache in it.
    memory_cache_bytes: Option<u64>,
    /// Processor time used so far, in microseconds.
    cpu_usage_us: Option<u64>,
    /// Processes and threads.
    pids: Option<u64>,
    /// Bytes written on top of the template.
    disk_bytes: Option<u64>,
    /// Processes the kernel killed for want of memory.
    oom_kills: Option<u64>,
}

/// Tells what a sandbox uses now. Wakes nothing, and is no activity.
#[utoipa::path(
    get, path = "/sandboxes/{id}/metrics", operation_id = "get_sandbox_metrics", tag = "monitoring",
    params(SandboxName),
    responses((status = 200, description = "What it uses.", body = UsageReply))
)]
pub(crate) async fn get_sandbox_metrics(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    name: SandboxName,
) -> Result<Json<UsageReply>, ApiError> {
    let sandbox = app.service().inspect(&caller, &name.id).await?;
    let Usage {
        memory_bytes,
        memory_cache_bytes,
        cpu_usage_us,
        pids,
        disk_bytes,
        oom_kills,
    } = app.service().usage(&caller, sandbox.id.as_str()).await?;
    Ok(Json(UsageReply {
        sandbox_id: sandbox.id.to_string(),
        memory_bytes,
        memory_cache_bytes,
        cpu_usage_us,
        pids,
        disk_bytes,
        oom_kills,
    }))
}
