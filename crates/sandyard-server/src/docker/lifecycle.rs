//! `POST /api/sandboxes/{id}/start`, `/stop`, `POST /api/sandboxes/cleanup`, `DELETE /api/sandboxes/{id}`.

use crate::model::Done;
use crate::prelude::*;

/// Start a sandbox
///
/// Starts a stopped sandbox, or resumes a paused one. Starting a running sandbox succeeds.
#[utoipa::path(
    post, path = "/api/sandboxes/{id}/start", tag = "docker", params(SandboxName),
    responses((status = 200, description = "Sandbox running.", body = Done))
)]
pub(crate) async fn start_container(call: Call, name: SandboxName) -> Reply<Done> {
    let sandbox = call.service().resume(&call.caller, &name.id).await?;
    Ok(Json(Done::new(format!("Sandbox {} started", sandbox.id))))
}

/// Stop a sandbox in the Docker style
///
/// Ends all processes of a sandbox and keeps its files. Stopping a stopped sandbox succeeds.
#[utoipa::path(
    post, path = "/api/sandboxes/{id}/stop", tag = "docker", params(SandboxName),
    responses((status = 200, description = "Sandbox stopped.", body = Done))
)]
pub(crate) async fn stop_container(call: Call, name: SandboxName) -> Reply<Done> {
    let sandbox = call.service().stop(&call.caller, &name.id).await?;
    Ok(Json(Done::new(format!("Sandbox {} stopped", sandbox.id))))
}

/// Query of a cleanup.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct CleanupQuery {
    /// Hours since a sandbox was stopped, 0–87,600 (default 24).
    #[param(minimum = 0, maximum = 87600)]
    hours: Option<f64>,
}

/// Sandboxes that were deleted.
#[derive(Serialize, ToSchema)]
pub(crate) struct CleanupReply {
    /// Always `true`; a failed request has an error status instead.
    success: bool,
    /// Summary of the result for people.
    message: String,
    /// IDs of the deleted sandboxes.
    removed: Vec<String>,
}

/// Delete old stopped sandboxes
///
/// Deletes the caller's sandboxes that have been stopped for longer than `hours`.
#[utoipa::path(
    post, path = "/api/sandboxes/cleanup", tag = "docker", params(CleanupQuery),
    responses((status = 200, description = "Old stopped sandboxes deleted.", body = CleanupReply))
)]
pub(crate) async fn clean_up_containers(
    call: Call,
    Query(query): Query<CleanupQuery>,
) -> Reply<CleanupReply> {
    let hours = query.hours.unwrap_or(24.0);
    bounds::number("hours", hours, 0.0, 87_600.0)?;
    let removed = call.service().clean_up(&call.caller, hours).await?;
    Ok(Json(CleanupReply {
        success: true,
        message: format!("{} sandboxes removed", removed.len()),
        removed: removed.iter().map(ToString::to_string).collect(),
    }))
}

/// Query of a deletion.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RemoveQuery {
    /// Whether to delete the files too (default true). They are part of the sandbox, so `false` is rejected.
    remove_volume: Option<bool>,
}

/// Delete a sandbox in the Docker style
///
/// Deletes a sandbox with its files, including `/workspace`.
#[utoipa::path(
    delete, path = "/api/sandboxes/{id}", tag = "docker", params(SandboxName, RemoveQuery),
    responses((status = 200, description = "Sandbox deleted.", body = Done))
)]
pub(crate) async fn delete_container(
    call: Call,
    name: SandboxName,
    Query(query): Query<RemoveQuery>,
) -> Reply<Done> {
    if query.remove_volume == Some(false) {
        // The caller wants to keep the files, which is not possible: reject the request instead of deleting them.
        call.inspect(&name.id).await?;
        return Err(ApiError::new(
            ErrorKind::Conflict,
            "the files live in the sandbox and cannot outlive it",
        )
        .hint("stop the sandbox to keep them, or take a snapshot first"));
    }
    let sandbox = call.service().delete(&call.caller, &name.id).await?;
    Ok(Json(Done::new(format!("Sandbox {} deleted", sandbox.id))))
}
