//! `POST /sandboxes/{id}/timeout` and `/sandboxes/{id}/refreshes`.

use std::time::Duration;

use crate::prelude::*;

use sandyard_core::SandboxStatus;
use sandyard_service::{Expiry, Sandbox, TimeoutRequest};

use super::create::{TimeoutSeconds, duration};
use super::name::{self, SandboxParam};

/// New lifetime of a sandbox.
#[derive(Deserialize, ToSchema)]
#[schema(as = E2bTimeout)]
pub(crate) struct SetTimeout {
    /// Seconds from now on; 0 ends the sandbox at once.
    #[schema(value_type = u64, minimum = 0, maximum = 315_360_000)]
    timeout: TimeoutSeconds,
}

/// Set the lifetime of a sandbox
///
/// Sets the lifetime of a sandbox from now on, whatever it was before.
#[utoipa::path(
    post, path = "/e2b/sandboxes/{id}/timeout", tag = "e2b", params(SandboxParam), request_body = SetTimeout,
    responses((status = 204, description = "Lifetime set."))
)]
pub(crate) async fn e2b_set_timeout(
    call: Call,
    target: SandboxParam,
    Body(request): Body<SetTimeout>,
) -> ApiResult<StatusCode> {
    let sandbox = running(&call, &target.id).await?;
    let request = TimeoutRequest {
        timeout: duration(request.timeout),
        action: None,
        expiry: Some(Expiry::Fixed),
    };
    call.service()
        .set_timeout(&call.caller, sandbox.id.as_str(), request)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Extension of a lifetime.
#[derive(Default, Deserialize, ToSchema)]
#[schema(as = E2bRefresh)]
pub(crate) struct Refresh {
    /// Seconds from now on, 1–3600 (default 15).
    #[schema(inline)]
    duration: Option<BoundedInt<1, 3600>>,
}

/// Extend the lifetime of a sandbox
///
/// Extends the lifetime of a sandbox to at least `duration` from now. Never shortens it.
#[utoipa::path(
    post, path = "/e2b/sandboxes/{id}/refreshes", tag = "e2b", params(SandboxParam), request_body = Option<Refresh>,
    responses((status = 204, description = "Lifetime extended, or already long enough."))
)]
pub(crate) async fn e2b_refresh(
    call: Call,
    target: SandboxParam,
    OptionalBody(request): OptionalBody<Refresh>,
) -> ApiResult<StatusCode> {
    let sandbox = running(&call, &target.id).await?;
    let duration = request.duration;
    let seconds = duration.map_or(15, |seconds| seconds.0.unsigned_abs());
    call.service()
        .extend(
            &call.caller,
            sandbox.id.as_str(),
            Duration::from_secs(seconds),
        )
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A running sandbox. A paused one has no timeout; the oldest SDKs resume a sandbox that is not found here.
async fn running(call: &Call, name: &str) -> ServiceResult<Sandbox> {
    let sandbox = name::existing(call, name).await?;
    match sandbox.status {
        SandboxStatus::Running => Ok(sandbox),
        _ => Err(ServiceError::no_sandbox(name).hint("it is paused: connect to it first")),
    }
}
