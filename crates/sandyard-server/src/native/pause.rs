//! `POST /sandboxes/{id}/pause`, `/resume` and `/stop`. All are idempotent.

use crate::model::sandbox::SandboxReply;
use crate::prelude::*;

/// Query of a pause.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PauseQuery {
    /// Reason, stored with the sandbox and its events. At most 256 characters.
    #[param(min_length = 0, max_length = 256, pattern = r"^[^\u0000]*$")]
    reason: Option<String>,
}

/// Pause a sandbox
///
/// Freezes a sandbox and keeps its memory, so that its processes continue where they were when it is resumed. If the
/// provider cannot keep memory, the sandbox is stopped instead. Pausing a paused sandbox succeeds.
#[utoipa::path(
    post, path = "/sandboxes/{id}/pause", tag = "sandboxes", params(SandboxName, PauseQuery),
    responses((status = 200, description = "Sandbox paused.", body = SandboxReply))
)]
pub(crate) async fn pause_sandbox(
    call: Call,
    name: SandboxName,
    Query(query): Query<PauseQuery>,
) -> Reply<SandboxReply> {
    bounds::optional_text("reason", query.reason.as_deref(), 0, 256)?;
    let service = call.service();
    let sandbox = service.pause(&call.caller, &name.id, query.reason).await?;
    Ok(Json(SandboxReply::new(&sandbox, &call, "Sandbox paused")))
}

/// Resume a sandbox
///
/// Continues a paused sandbox or starts a stopped one, and restarts its idle timeout. Resuming a running sandbox
/// succeeds.
#[utoipa::path(
    post, path = "/sandboxes/{id}/resume", tag = "sandboxes", params(SandboxName),
    responses((status = 200, description = "Sandbox running.", body = SandboxReply))
)]
pub(crate) async fn resume_sandbox(call: Call, name: SandboxName) -> Reply<SandboxReply> {
    let sandbox = call.service().resume(&call.caller, &name.id).await?;
    Ok(Json(SandboxReply::new(&sandbox, &call, "Sandbox resumed")))
}

/// Stop a sandbox
///
/// Ends all processes of a sandbox and keeps its files. Stopping a stopped sandbox succeeds.
#[utoipa::path(
    post, path = "/sandboxes/{id}/stop", tag = "sandboxes", params(SandboxName),
    responses((status = 200, description = "Sandbox stopped.", body = SandboxReply))
)]
pub(crate) async fn stop_sandbox(call: Call, name: SandboxName) -> Reply<SandboxReply> {
    let sandbox = call.service().stop(&call.caller, &name.id).await?;
    Ok(Json(SandboxReply::new(&sandbox, &call, "Sandbox stopped")))
}
