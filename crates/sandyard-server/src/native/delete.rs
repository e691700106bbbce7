//! `DELETE /sandboxes/{id}` = `POST /sandboxes/delete`.

use super::connect::NamedSandbox;
use crate::model::Done;
use crate::prelude::*;

/// Delete a sandbox
///
/// Deletes a sandbox with all its files. Volumes stay. Deleting a deleted sandbox succeeds.
#[utoipa::path(
    delete, path = "/sandboxes/{id}", tag = "sandboxes", params(SandboxName),
    responses((status = 200, description = "Sandbox deleted.", body = Done))
)]
pub(crate) async fn delete_sandbox(call: Call, name: SandboxName) -> Reply<Done> {
    delete(&call, &name.id).await
}

/// Delete a sandbox named in the body
///
/// Deletes a sandbox with all its files, like `DELETE /sandboxes/{id}`. Deleting a deleted sandbox succeeds.
#[utoipa::path(
    post, path = "/sandboxes/delete", tag = "sandboxes", request_body = NamedSandbox,
    responses((status = 200, description = "Sandbox deleted.", body = Done))
)]
pub(crate) async fn delete_named_sandbox(
    call: Call,
    Body(request): Body<NamedSandbox>,
) -> Reply<Done> {
    delete(&call, sandbox_name(&request.sandbox_id)?).await
}

async fn delete(call: &Call, name: &str) -> Reply<Done> {
    let sandbox = call.service().delete(&call.caller, name).await?;
    Ok(Json(Done::new(format!("Sandbox {} deleted", sandbox.id))))
}
