//! `POST /api/sandboxes/{id}/start`, `/stop`, `POST /api/sandboxes/cleanup`, `DELETE /api/sandboxes/{id}`.

use axum::Json;
use axum::extract::State;
use sandyard_core::ErrorKind;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::access::Authenticated;
use crate::app::App;
use crate::bounds;
use crate::error::ApiError;
use crate::extract::{Query, SandboxName};
use crate::model::Done;

/// Starts a sandbox; one that runs stays as it is.
#[utoipa::path(
    post, path = "/api/sandboxes/{id}/start", operation_id = "start_container", tag = "docker",
    params(SandboxName),
    responses((status = 200, description = "It runs.", body = Done))
)]
pub(crate) async fn start_container(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    name: SandboxName,
) -> Result<Json<Done>, ApiError> {
    let sandbox = app.service().resume(&caller, &name.id).await?;
    Ok(Json(Done::new(format!("Sandbox {} started", sandbox.id))))
}

/// Ends a sandbox's processes and keeps its files.
#[utoipa::path(
    post, path = "/api/sandboxes/{id}/stop", operation_id = "stop_container", tag = "docker",
    params(SandboxName),
    responses((status = 200, description = "It does not run.", body = Done))
)]
pub(crate) async fn stop_container(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    name: SandboxName,
) -> Result<Json<Done>, ApiError> {
    let sandbox = app.service().stop(&caller, &name.id).await?;
    Ok(Json(Done::new(format!("Sandbox {} stopped", sandbox.id))))
}

/// How old.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CleanupQuery {
    /// Hours since they were stopped; 24 if it is left out.
    #[param(minimum = 0, maximum = 87600)]
    hours: Option<f64>,
}

/// What was removed.
#[derive(Serialize, ToSchema)]
pub(crate) struct CleanupReply {
    /// Always true; failures are HTTP errors.
    success: bool,
    /// What happened, for people.
    message: String,
    /// Which.
    removed: Vec<String>,
}

/// Removes the caller's sandboxes that have been stopped for long.
#[utoipa::path(
    post, path = "/api/sandboxes/cleanup", operation_id = "clean_up_containers", tag = "docker",
    params(CleanupQuery),
    responses((status = 200, description = "They are gone.", body = CleanupReply))
)]
pub(crate) async fn clean_up_containers(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    Query(query): Query<CleanupQuery>,
) -> Result<Json<CleanupReply>, ApiError> {
    let hours = query.hours.unwrap_or(24.0);
    bounds::number("hours", hours, 0.0, 87_600.0)?;
    let removed = app.service().clean_up(&caller, hours).await?;
    Ok(Json(CleanupReply {
        success: true,
        message: format!("{} sandboxes removed", removed.len()),
        removed: removed.iter().map(ToString::to_string).collect(),
    }))
}

/// What goes with it.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RemoveQuery {
    /// Whether its files go too. They live in the sandbox, so they do: `false` is refused.
    remove_volume: Option<bool>,
}

/// Removes a sandbox and its files.
#[utoipa::path(
    delete, path = "/api/sandboxes/{id}", operation_id = "delete_container", tag = "docker",
    params(SandboxName, RemoveQuery),
    responses((status = 200, description = "It is gone.", body = Done))
)]
pub(crate) async fn delete_container(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    name: SandboxName,
    Query(query): Query<RemoveQuery>,
) -> Result<Json<Done>, ApiError> {
    if query.remove_volume == Some(false) {
        // Whoever asks for this wants the files: better nothing happens than that they are gone.
        app.service().inspect(&caller, &name.id).await?;
        return Err(ApiError::new(
            ErrorKind::Conflict,
            "the files live in the sandbox and cannot outlive it",
        )
        .hint("stop the sandbox to keep them, or take a snapshot first"));
    }
    let sandbox = app.service().delete(&caller, &name.id).await?;
    Ok(Json(Done::new(format!("Sandbox {} deleted", sandbox.id))))
}
