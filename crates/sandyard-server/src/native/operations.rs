//! For whoever runs the server: `GET /nodes`, `GET /timers/dead`, `POST /timers/dead/{name}/revive`.

use axum::Json;
use axum::extract::State;
use sandyard_core::ErrorKind;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::extract::PathName;
use crate::model::Done;
use crate::time::iso;

/// A server that shares this store.
#[derive(Serialize, ToSchema)]
pub(crate) struct NodeView {
    id: String,
    /// Where other nodes reach it.
    url: Option<String>,
    /// Which places it can reach.
    locations: Vec<String>,
    version: String,
    started_at: String,
    /// When it last said that it is there.
    seen_at: String,
}

/// The servers that share this store.
#[derive(Serialize, ToSchema)]
pub(crate) struct NodeList {
    nodes: Vec<NodeView>,
}

/// Lists the servers that share this store.
#[utoipa::path(
    get, path = "/nodes", operation_id = "list_nodes", tag = "operations",
    responses((status = 200, description = "They.", body = NodeList))
)]
pub(crate) async fn list_nodes(State(app): State<App>) -> Result<Json<NodeList>, ApiError> {
    let nodes = app.service().nodes().await?;
    let view = |node: sandyard_store::model::Node| NodeView {
        id: node.id,
        url: node.url,
        locations: node.locations,
        version: node.version,
        started_at: iso(node.started_ms),
        seen_at: iso(node.seen_ms),
    };
    let nodes = nodes.into_iter().map(view).collect();
    Ok(Json(NodeList { nodes }))
}

/// A timer that was given up.
#[derive(Serialize, ToSchema)]
pub(crate) struct TimerView {
    /// The sandbox it is about.
    subject: String,
    topic: String,
    location: String,
    due_at: String,
    /// How often it was tried.
    attempts: i64,
    /// Why the last try failed.
    last_error: Option<String>,
}

/// Timers that were given up.
#[derive(Serialize, ToSchema)]
pub(crate) struct TimerList {
    timers: Vec<TimerView>,
}

/// Lists timers that were given up after too many failures.
#[utoipa::path(
    get, path = "/timers/dead", operation_id = "list_dead_timers", tag = "operations",
    responses((status = 200, description = "They.", body = TimerList))
)]
pub(crate) async fn list_dead_timers(State(app): State<App>) -> Result<Json<TimerList>, ApiError> {
    let timers = app.service().dead_timers().await?;
    let view = |timer: sandyard_store::model::Timer| TimerView {
        subject: timer.subject,
        topic: timer.topic,
        location: timer.location,
        due_at: iso(timer.due_ms),
        attempts: timer.attempts,
        last_error: timer.last_error,
    };
    let timers = timers.into_iter().map(view).collect();
    Ok(Json(TimerList { timers }))
}

/// Gives a dead timer another chance now.
#[utoipa::path(
    post, path = "/timers/dead/{name}/revive", operation_id = "revive_timer", tag = "operations",
    params(("name" = String, Path, description = "The sandbox it is about.", min_length = 1, max_length = 128)),
    responses((status = 200, description = "It will be tried.", body = Done))
)]
pub(crate) async fn revive_timer(
    State(app): State<App>,
    PathName(subject): PathName,
) -> Result<Json<Done>, ApiError> {
    if app.service().revive_timer(&subject).await? {
        return Ok(Json(Done::new("The timer is due now")));
    }
    Err(ApiError::new(
        ErrorKind::NotFound,
        format!("there is no dead timer of `{subject}`"),
    ))
}
