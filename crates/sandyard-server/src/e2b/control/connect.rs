//! `POST /v2/sandboxes/{id}/connect`, `/sandboxes/{id}/connect` and `/sandboxes/{id}/resume`.

use std::time::Duration;

use crate::prelude::*;

use sandyard_core::SandboxStatus;
use sandyard_service::{ConnectRequest, TimeoutAction, TimeoutRequest};

use super::create::{TimeoutSeconds, duration};
use super::name::{self, SandboxParam};
use super::view::SandboxView;

/// Default time, from now, that a sandbox has at least after a connect.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);
/// Default time after a resume.
const LIFE_RESUMED: Duration = Duration::from_secs(15);

/// Options of a connection.
#[derive(Default, Deserialize, ToSchema)]
#[schema(as = E2bConnect)]
pub(crate) struct Connect {
    /// Minimum lifetime from now on in seconds (default 300).
    #[schema(inline)]
    timeout: Option<TimeoutSeconds>,
    /// Whether a paused sandbox continues with its memory (default true).
    memory: Option<bool>,
}

/// Connect to a sandbox for E2B clients
///
/// Returns a running sandbox; a paused one is resumed first. The lifetime is extended if `timeout` reaches further, and
/// never shortened.
#[utoipa::path(
    post, path = "/e2b/v2/sandboxes/{id}/connect", tag = "e2b", params(SandboxParam), request_body = Option<Connect>,
    responses(
        (status = 200, description = "Sandbox was running already.", body = SandboxView),
        (status = 201, description = "Sandbox was paused and is running now.", body = SandboxView),
    )
)]
pub(crate) async fn e2b_connect(
    call: Call,
    target: SandboxParam,
    OptionalBody(options): OptionalBody<Connect>,
) -> ApiResult<(StatusCode, Json<SandboxView>)> {
    let sandbox = name::existing(&call, &target.id).await?;
    let request = ConnectRequest {
        timeout: Some(options.timeout.map_or(DEFAULT_TIMEOUT, duration)),
        is_cold: options.memory == Some(false),
    };
    let service = call.service();
    let connected = service
        .connect_for(&call.caller, sandbox.id.as_str(), request)
        .await?;
    let status = match connected.was_woken {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    Ok((status, Json(SandboxView::new(&call, &connected.sandbox)?)))
}

/// Options of a resume.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = E2bResume)]
pub(crate) struct Resume {
    /// Lifetime from now on in seconds (default 15).
    #[schema(inline)]
    timeout: Option<TimeoutSeconds>,
    /// Whether to pause the sandbox when its lifetime is over. Default: unchanged.
    auto_pause: Option<bool>,
    /// Whether to continue with the memory of the pause (default true).
    memory: Option<bool>,
}

/// Resume a paused sandbox
///
/// Continues a paused sandbox. Fails with 409 if the sandbox is running.
#[utoipa::path(
    post, path = "/e2b/sandboxes/{id}/resume", tag = "e2b", params(SandboxParam), request_body = Option<Resume>,
    responses((status = 201, description = "Sandbox running.", body = SandboxView))
)]
pub(crate) async fn e2b_resume(
    call: Call,
    target: SandboxParam,
    OptionalBody(options): OptionalBody<Resume>,
) -> ApiResult<(StatusCode, Json<SandboxView>)> {
    let sandbox = name::existing(&call, &target.id).await?;
    if sandbox.status == SandboxStatus::Running {
        return Err(ServiceError::new(
            ErrorKind::Conflict,
            format!("sandbox `{}` is already running", sandbox.id),
        )
        .into());
    }
    let id = sandbox.id.as_str();
    let timeout = options.timeout.map_or(LIFE_RESUMED, duration);
    let request = ConnectRequest {
        timeout: Some(timeout),
        is_cold: options.memory == Some(false),
    };
    let service = call.service();
    let mut sandbox = service
        .connect_for(&call.caller, id, request)
        .await?
        .sandbox;
    if let Some(is_paused) = options.auto_pause {
        let action = match is_paused {
            true => TimeoutAction::Pause,
            false => TimeoutAction::Delete,
        };
        if sandbox.timeout_action != action {
            let request = TimeoutRequest {
                timeout,
                action: Some(action),
                expiry: None,
            };
            sandbox = service.set_timeout(&call.caller, id, request).await?;
        }
    }
    let view = SandboxView::new(&call, &sandbox)?;
    Ok((StatusCode::CREATED, Json(view)))
}
