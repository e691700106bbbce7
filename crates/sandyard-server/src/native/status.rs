//! `GET /sandboxes/{id}/status` and `GET /sandboxes/status`, for one sandbox or all.

use sandyard_service::SandboxFilter;

use crate::model::sandbox::StatusReply;
use crate::prelude::*;

/// Get the status of a sandbox
///
/// Returns the current status of a sandbox without waking it.
#[utoipa::path(
    get, path = "/sandboxes/{id}/status", tag = "sandboxes", params(SandboxName),
    responses((status = 200, description = "Status returned.", body = StatusReply))
)]
pub(crate) async fn get_sandbox_status(call: Call, name: SandboxName) -> Reply<StatusReply> {
    let sandbox = call.inspect(&name.id).await?;
    Ok(Json(StatusReply::from(&sandbox)))
}

/// Query of a status.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StatusQuery {
    /// Sandbox to return: its ID, its alias, or the ID its provider gave it. Default: all sandboxes of the caller.
    #[param(min_length = 1, max_length = 128)]
    sandbox_id: Option<String>,
}

/// Status of the named sandbox, or of all the caller's sandboxes.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum StatusesReply {
    /// Status of the named sandbox.
    Single(StatusReply),
    /// Status of all the caller's sandboxes.
    All {
        /// Sandboxes, newest first, at most 1,000.
        sandboxes: Vec<StatusReply>,
    },
}

/// Get the status of one or all sandboxes
///
/// Returns the status of the named sandbox, or of all the caller's sandboxes (at most 1,000, newest first) if
/// `sandbox_id` is omitted. Does not wake a sandbox.
#[utoipa::path(
    get, path = "/sandboxes/status", tag = "sandboxes", params(StatusQuery),
    responses((status = 200, description = "Status returned.", body = StatusesReply))
)]
pub(crate) async fn get_status(
    call: Call,
    Query(query): Query<StatusQuery>,
) -> Reply<StatusesReply> {
    if let Some(name) = &query.sandbox_id {
        let sandbox = call.inspect(name).await?;
        return Ok(Json(StatusesReply::Single(StatusReply::from(&sandbox))));
    }
    let service = call.service();
    let page = service.list(&call.caller, SandboxFilter::default()).await?;
    let sandboxes = page.items.iter().map(StatusReply::from).collect();
    Ok(Json(StatusesReply::All { sandboxes }))
}
