//! `GET` and `DELETE /sandboxes/{id}`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use sandyard_core::SandboxStatus;
use sandyard_service::ServiceError;

use super::name::{self, SandboxParam};
use super::view::{DetailView, Names};
use crate::access::Authenticated;
use crate::app::App;
use crate::error::ApiError;

/// Get a sandbox for E2B clients
///
/// Returns one running or paused sandbox, with the tokens to use it.
#[utoipa::path(
    get, path = "/e2b/sandboxes/{id}", operation_id = "e2b_get", tag = "e2b",
    params(SandboxParam),
    responses((status = 200, description = "Sandbox returned.", body = DetailView))
)]
pub(crate) async fn e2b_get(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    target: SandboxParam,
) -> Result<Json<DetailView>, ApiError> {
    let sandbox = name::existing(&app, &caller, &target.id).await?;
    let names = Names::find(&app, &caller, std::slice::from_ref(&sandbox)).await?;
    Ok(Json(DetailView::new(&app, &caller, &sandbox, &names)?))
}

/// Delete a sandbox for E2B clients
///
/// Deletes a sandbox with all its files.
#[utoipa::path(
    delete, path = "/e2b/sandboxes/{id}", operation_id = "e2b_delete", tag = "e2b",
    params(SandboxParam),
    responses((status = 204, description = "Sandbox deleted."))
)]
pub(crate) async fn e2b_delete(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    target: SandboxParam,
) -> Result<StatusCode, ApiError> {
    let sandbox = app.service().inspect(&caller, &target.id).await?;
    if sandbox.status == SandboxStatus::Deleted {
        return Err(ServiceError::no_sandbox(&target.id)
            .hint("it is already deleted")
            .into());
    }
    app.service().delete(&caller, sandbox.id.as_str()).await?;
    Ok(StatusCode::NO_CONTENT)
}
