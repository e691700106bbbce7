//! `POST /sandboxes/{id}/pause`.

use axum::extract::State;
use axum::http::StatusCode;
use sandyard_core::{ErrorKind, SandboxStatus};
use sandyard_service::ServiceError;
use serde::Deserialize;
use utoipa::ToSchema;

use super::name::{self, Named};
use crate::access::Authenticated;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::OptionalBody;

/// How to pause.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = E2bPause)]
pub(crate) struct Pause {
    /// Whether its memory is kept; yes if it is left out. Else its processes end, and it starts anew from its files.
    memory: Option<bool>,
    /// Whether to refuse when its agent does not answer.
    require_healthy_guest: Option<bool>,
}

/// Pauses a sandbox.
#[utoipa::path(
    post, path = "/e2b/sandboxes/{id}/pause", operation_id = "e2b_pause", tag = "e2b",
    params(Named), request_body = Option<Pause>,
    responses((status = 204, description = "It is paused."))
)]
pub(crate) async fn e2b_pause(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    named: Named,
    OptionalBody(wanted): OptionalBody<Option<Pause>>,
) -> Result<StatusCode, ApiError> {
    let wanted = wanted.unwrap_or_default();
    let sandbox = name::existing(&app, &caller, &named.id).await?;
    let id = sandbox.id.as_str();
    if sandbox.status != SandboxStatus::Running {
        return Err(ServiceError::new(
            ErrorKind::Conflict,
            format!("sandbox `{id}` is paused already"),
        )
        .into());
    }
    let service = app.service();
    if wanted.require_healthy_guest == Some(true) {
        let live = service.live(&caller, id).await?;
        live.agent.health().await.map_err(|error| {
            ServiceError::new(
                ErrorKind::Unavailable,
                format!("the agent of sandbox `{id}` does not answer"),
            )
            .source(error)
        })?;
    }
    match wanted.memory {
        Some(false) => service.stop(&caller, id).await?,
        _ => service.pause(&caller, id, None).await?,
    };
    Ok(StatusCode::NO_CONTENT)
}
