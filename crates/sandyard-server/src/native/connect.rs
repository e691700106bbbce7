//! `POST /sandboxes/connect`.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::access::Authenticated;
use crate::app::App;
use crate::bounds;
use crate::error::ApiError;
use crate::extract::{Body, sandbox_name};
use crate::links::Links;
use crate::model::sandbox::SandboxReply;

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
    post, path = "/sandboxes/connect", operation_id = "connect_sandbox", tag = "sandboxes",
    request_body = NamedSandbox,
    responses((status = 200, description = "Sandbox running; its idle timeout has been restarted.", body = SandboxReply))
)]
pub(crate) async fn connect_sandbox(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    links: Links,
    Body(request): Body<NamedSandbox>,
) -> Result<Json<SandboxReply>, ApiError> {
    let name = sandbox_name(&request.sandbox_id)?;
    let sandbox = app.service().connect(&caller, name).await?;
    Ok(Json(SandboxReply::new(&sandbox, &links, "Connected")))
}
