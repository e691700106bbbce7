//! `POST /sandboxes/{id}/pause`, `/resume` and `/stop`. All may be repeated.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Authenticated;
use crate::app::App;
use crate::bounds;
use crate::error::ApiError;
use crate::extract::{Query, SandboxName};
use crate::links::Links;
use crate::model::sandbox::SandboxReply;

/// Why.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PauseQuery {
    /// Kept with the sandbox and its events.
    #[param(min_length = 0, max_length = 256, pattern = r"^[^\u0000]*$")]
    reason: Option<String>,
}

/// Freezes a sandbox with its memory kept.
#[utoipa::path(
    post, path = "/sandboxes/{id}/pause", operation_id = "pause_sandbox", tag = "sandboxes",
    params(SandboxName, PauseQuery),
    responses((status = 200, description = "It does not run.", body = SandboxReply))
)]
pub(crate) async fn pause_sandbox(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    links: Links,
    name: SandboxName,
    Query(query): Query<PauseQuery>,
) -> Result<Json<SandboxReply>, ApiError> {
    bounds::optional_text("reason", query.reason.as_deref(), 0, 256)?;
    let sandbox = app.service().pause(&caller, &name.id, query.reason).await?;
    Ok(Json(SandboxReply::new(&sandbox, &links, "Sandbox paused")))
}

/// Thaws or starts a sandbox.
#[utoipa::path(
    post, path = "/sandboxes/{id}/resume", operation_id = "resume_sandbox", tag = "sandboxes",
    params(SandboxName),
    responses((status = 200, description = "It runs.", body = SandboxReply))
)]
pub(crate) async fn resume_sandbox(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    links: Links,
    name: SandboxName,
) -> Result<Json<SandboxReply>, ApiError> {
    let sandbox = app.service().resume(&caller, &name.id).await?;
    Ok(Json(SandboxReply::new(&sandbox, &links, "Sandbox resumed")))
}

/// Ends a sandbox's processes and keeps its files.
#[utoipa::path(
    post, path = "/sandboxes/{id}/stop", operation_id = "stop_sandbox", tag = "sandboxes",
    params(SandboxName),
    responses((status = 200, description = "It does not run.", body = SandboxReply))
)]
pub(crate) async fn stop_sandbox(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    links: Links,
    name: SandboxName,
) -> Result<Json<SandboxReply>, ApiError> {
    let sandbox = app.service().stop(&caller, &name.id).await?;
    Ok(Json(SandboxReply::new(&sandbox, &links, "Sandbox stopped")))
}
