//! `GET /sandboxes/{id}/status`, `GET /sandboxes/status?sandbox_id=`, and of all without an id.

use axum::Json;
use axum::extract::State;
use sandyard_service::SandboxFilter;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::access::Authenticated;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Query, SandboxName, sandbox_name};
use crate::model::sandbox::StatusReply;

/// Tells where a sandbox stands.
#[utoipa::path(
    get, path = "/sandboxes/{id}/status", operation_id = "get_sandbox_status", tag = "sandboxes",
    params(SandboxName),
    responses((status = 200, description = "Where it stands.", body = StatusReply))
)]
pub(crate) async fn get_sandbox_status(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    name: SandboxName,
) -> Result<Json<StatusReply>, ApiError> {
    let sandbox = app.service().inspect(&caller, &name.id).await?;
    Ok(Json(StatusReply::from(&sandbox)))
}

/// Which sandbox.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StatusQuery {
    /// The sandbox; left out: all of the caller's.
    #[param(min_length = 1, max_length = 128)]
    sandbox_id: Option<String>,
}

/// Where one sandbox stands, or all of the caller's.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum StatusesReply {
    /// The one that was named.
    One(StatusReply),
    /// All of the caller's.
    All {
        /// Newest first, at most 1,000.
        sandboxes: Vec<StatusReply>,
    },
}

/// Tells where one sandbox stands, or all of the caller's.
#[utoipa::path(
    get, path = "/sandboxes/status", operation_id = "get_status", tag = "sandboxes",
    params(StatusQuery),
    responses((status = 200, description = "Where it stands, or they.", body = StatusesReply))
)]
pub(crate) async fn get_status(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    Query(query): Query<StatusQuery>,
) -> Result<Json<StatusesReply>, ApiError> {
    if let Some(name) = &query.sandbox_id {
        let sandbox = app.service().inspect(&caller, sandbox_name(name)?).await?;
        return Ok(Json(StatusesReply::One(StatusReply::from(&sandbox))));
    }
    let page = app
        .service()
        .list(&caller, SandboxFilter::default())
        .await?;
    let sandboxes = page.items.iter().map(StatusReply::from).collect();
    Ok(Json(StatusesReply::All { sandboxes }))
}
