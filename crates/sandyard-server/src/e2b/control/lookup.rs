//! `GET` and `DELETE /sandboxes/{id}`.

use sandyard_core::SandboxStatus;

use crate::prelude::*;

use super::name::{self, SandboxParam};
use super::view::{DetailView, Names};

/// Get a sandbox for E2B clients
///
/// Returns one running or paused sandbox, with the tokens to use it.
#[utoipa::path(
    get, path = "/e2b/sandboxes/{id}", tag = "e2b", params(SandboxParam),
    responses((status = 200, description = "Sandbox returned.", body = DetailView))
)]
pub(crate) async fn e2b_get(call: Call, target: SandboxParam) -> Reply<DetailView> {
    let sandbox = name::existing(&call, &target.id).await?;
    let names = Names::find(&call, std::slice::from_ref(&sandbox)).await?;
    Ok(Json(DetailView::new(&call, &sandbox, &names)?))
}

/// Delete a sandbox for E2B clients
///
/// Deletes a sandbox with all its files.
#[utoipa::path(
    delete, path = "/e2b/sandboxes/{id}", tag = "e2b", params(SandboxParam),
    responses((status = 204, description = "Sandbox deleted."))
)]
pub(crate) async fn e2b_delete(call: Call, target: SandboxParam) -> ApiResult<StatusCode> {
    let sandbox = call.inspect(&target.id).await?;
    if sandbox.status == SandboxStatus::Deleted {
        return Err(ServiceError::no_sandbox(&target.id)
            .hint("it is already deleted")
            .into());
    }
    call.service()
        .delete(&call.caller, sandbox.id.as_str())
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
