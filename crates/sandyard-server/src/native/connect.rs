//! `POST /sandboxes/connect`.

use crate::model::sandbox::SandboxReply;
use crate::prelude::*;

/// Request that names a sandbox.
#[derive(Deserialize, ToSchema)]
pub(crate) struct NamedSandbox {
    /// Sandbox to act on.
    #[schema(schema_with = bounds::sandbox_id_schema)]
    pub(crate) sandbox_id: String,
}

/// Connect to a sandbox
///
/// Makes sure that a sandbox is running: wakes it if it is paused or stopped, and restarts its idle timeout. Connecting
/// to a running sandbox is safe to repeat.
#[utoipa::path(
    post, path = "/sandboxes/connect", tag = "sandboxes", request_body = NamedSandbox,
    responses((status = 200, description = "Sandbox running; its idle timeout has been restarted.", body = SandboxReply))
)]
pub(crate) async fn connect_sandbox(
    call: Call,
    Body(request): Body<NamedSandbox>,
) -> Reply<SandboxReply> {
    let name = sandbox_name(&request.sandbox_id)?;
    let sandbox = call.service().connect(&call.caller, name).await?;
    Ok(Json(SandboxReply::new(&sandbox, &call, "Connected")))
}
