//! `POST /sandboxes/{id}/pause`.

use sandyard_core::SandboxStatus;

use crate::prelude::*;

use super::name::{self, SandboxParam};

/// Options of a pause.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = E2bPause)]
pub(crate) struct Pause {
    /// Whether to keep the memory (default true). If not, the processes end and the sandbox later starts from its
    /// files.
    memory: Option<bool>,
    /// Whether to fail if the sandbox's agent does not answer (default false).
    require_healthy_guest: Option<bool>,
}

/// Pause a sandbox for E2B clients
///
/// Pauses a running sandbox, with its memory unless `memory` is false. Fails with 409 if the sandbox is paused already.
#[utoipa::path(
    post, path = "/e2b/sandboxes/{id}/pause", tag = "e2b", params(SandboxParam), request_body = Option<Pause>,
    responses((status = 204, description = "Sandbox paused."))
)]
pub(crate) async fn e2b_pause(
    call: Call,
    target: SandboxParam,
    OptionalBody(options): OptionalBody<Pause>,
) -> ApiResult<StatusCode> {
    let sandbox = name::existing(&call, &target.id).await?;
    let id = sandbox.id.as_str();
    if sandbox.status != SandboxStatus::Running {
        return Err(ServiceError::new(
            ErrorKind::Conflict,
            format!("sandbox `{id}` is already paused"),
        )
        .into());
    }
    let service = call.service();
    if options.require_healthy_guest == Some(true) {
        let live = call.live(id).await?;
        live.agent.health().await.map_err(|error| {
            ServiceError::new(
                ErrorKind::Unavailable,
                format!("the agent of sandbox `{id}` does not answer"),
            )
            .source(error)
        })?;
    }
    match options.memory {
        Some(false) => service.stop(&call.caller, id).await?,
        _ => service.pause(&call.caller, id, None).await?,
    };
    Ok(StatusCode::NO_CONTENT)
}
