//! Routes for operators: `GET /nodes`, `GET /timers/dead`, `POST /timers/dead/{name}/revive`.

use axum::extract::State;

use crate::app::App;
use crate::model::Done;
use crate::prelude::*;

/// Server that shares the database.
#[derive(Serialize, ToSchema)]
pub(crate) struct NodeView {
    /// ID of the node, new at every start.
    id: String,
    /// URL at which other nodes reach this one. Null if it cannot be reached.
    url: Option<String>,
    /// Locations of sandboxes that the node can operate on.
    locations: Vec<String>,
    /// Version of the server.
    version: String,
    /// Time at which the node started (RFC 3339).
    started_at: String,
    /// Time of the node's last heartbeat (RFC 3339).
    seen_at: String,
}

/// Servers that share the database.
#[derive(Serialize, ToSchema)]
pub(crate) struct NodeList {
    /// Nodes that are alive.
    nodes: Vec<NodeView>,
}

/// List nodes
///
/// Returns the servers that share this server's database. Requires the scope `admin`.
#[utoipa::path(
    get, path = "/nodes", tag = "operations",
    responses((status = 200, description = "Nodes returned.", body = NodeList))
)]
pub(crate) async fn list_nodes(State(app): State<App>) -> Reply<NodeList> {
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

/// Timer that is no longer retried.
#[derive(Serialize, ToSchema)]
pub(crate) struct TimerView {
    /// ID of the sandbox that the timer belongs to.
    subject: String,
    /// Kind of work that was due.
    topic: String,
    /// Location of the sandbox.
    location: String,
    /// Time at which the work was due (RFC 3339).
    due_at: String,
    /// Number of attempts so far.
    attempts: i64,
    /// Error of the last attempt, if known.
    last_error: Option<String>,
}

/// Timers that are no longer retried.
#[derive(Serialize, ToSchema)]
pub(crate) struct TimerList {
    /// Failed timers.
    timers: Vec<TimerView>,
}

/// List failed timers
///
/// Returns the timers that the server stopped retrying after too many failures. A timer is work that is due later, such
/// as pausing or deleting a sandbox. Requires the scope `admin`.
#[utoipa::path(
    get, path = "/timers/dead", tag = "operations",
    responses((status = 200, description = "Failed timers returned.", body = TimerList))
)]
pub(crate) async fn list_dead_timers(State(app): State<App>) -> Reply<TimerList> {
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

/// Retry a failed timer
///
/// Makes a failed timer due now, so that the server tries it again. Requires the scope `admin`.
#[utoipa::path(
    post, path = "/timers/dead/{name}/revive", tag = "operations",
    params(("name" = String, Path, description = "ID of the sandbox that the timer belongs to.", min_length = 1, max_length = 128)),
    responses((status = 200, description = "Timer scheduled for now.", body = Done))
)]
pub(crate) async fn revive_timer(call: Call, PathName(subject): PathName) -> Reply<Done> {
    if call.service().revive_timer(&subject).await? {
        return Ok(Json(Done::new("The timer is due now")));
    }
    Err(ApiError::new(
        ErrorKind::NotFound,
        format!("there is no dead timer of `{subject}`"),
    ))
}
