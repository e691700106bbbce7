//! `DELETE /sandboxes/{id}` = `POST /sandboxes/delete`.

use axum::Json;
use axum::extract::State;
use sandyard_core::Caller;

use super::connect::NamedSandbox;
use crate::access::Authenticated;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Body, SandboxName, sandbox_name};
use crate::model::Done;

/// Delete a sandbox
///
/// Deletes a sandbox with all its files. Volumes stay. Deleting a deleted sandbox succeeds.
#[utoipa::path(
    delete, path = "/sandboxes/{id}", operation_id = "delete_sandbox", tag = "sandboxes",
    params(SandboxName),
    responses((status = 200, description = "Sandbox deleted.", body = Done))
)]
pub(crate) async fn delete_sandbox(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    name: SandboxName,
) -> Result<Json<Done>, ApiError> {
    delete(&app, &caller, &name.id).await
}

/// Delete a sandbox named in the body
///
/// Deletes a sandbox with all its files, like `DELETE /sandboxes/{id}`. Deleting a deleted sandbox succeeds.
#[utoipa::path(
    post, path = "/sandboxes/delete", operation_id = "delete_named_sandbox", tag = "sandboxes",
    request_body = NamedSandbox,
    responses((status = 200, description = "Sandbox deleted.", body = Done))
)]
pub(crate) async fn delete_named_sandbox(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    Body(request): Body<NamedSandbox>,
) -> Result<Json<Done>, ApiError> {
    delete(&app, &caller, sandbox_name(&request.sandbox_id)?).await
}

async fn delete(app: &App, caller: &Caller, name: &str) -> Result<Json<Done>, ApiError> {
    let sandbox = app.service().delete(caller, name).await?;
    Ok(Json(Done::new(format!("Sandbox {} deleted", sandbox.id))))
}
