//! `POST /sandboxes/{id}/fork`.

use std::time::Duration;

use sandyard_service::{ForkRequest, Sandbox};

use super::create::{TimeoutSeconds, duration};
use super::name::{self, SandboxParam};
use super::view::SandboxView;
use crate::e2b::error::E2bError;
use crate::prelude::*;

/// Default time that a fork lives.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(15);

/// Forks to create.
#[derive(Default, Deserialize, ToSchema)]
#[schema(as = E2bFork)]
pub(crate) struct Fork {
    /// Lifetime of each fork in seconds (default 300).
    #[schema(inline)]
    timeout: Option<TimeoutSeconds>,
    /// Number of forks, 1–20 (default 1).
    #[schema(inline)]
    count: Option<BoundedInt<1, 20>>,
}

/// Fork, or the reason why it failed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = E2bForkResult)]
pub(crate) enum Forked {
    /// Fork that was created and is running.
    Sandbox(Box<SandboxView>),
    /// Reason why this fork failed; others may have succeeded.
    Error(E2bError),
}

/// Fork a sandbox several times
///
/// Creates sandboxes from the files of this one, all from the same moment. Each fork succeeds or fails on its own: the
/// response has one result for each.
#[utoipa::path(
    post, path = "/e2b/sandboxes/{id}/fork", tag = "e2b", params(SandboxParam), request_body = Option<Fork>,
    responses((status = 201, description = "One result for each requested fork.", body = Vec<Forked>))
)]
pub(crate) async fn e2b_fork(
    call: Call,
    target: SandboxParam,
    OptionalBody(options): OptionalBody<Fork>,
) -> ApiResult<(StatusCode, Json<Vec<Forked>>)> {
    let sandbox = name::existing(&call, &target.id).await?;
    let request = ForkRequest {
        timeout: Some(options.timeout.map_or(DEFAULT_TIMEOUT, duration)),
        ..ForkRequest::default()
    };
    let count = options.count.map_or(1, |count| count.0 as usize);
    let id = sandbox.id.as_str();
    let service = call.service();
    let forks = service.fork_many(&call.caller, id, request, count).await?;
    let view =
        |fork: ServiceResult<Sandbox>| match fork.and_then(|fork| SandboxView::new(&call, &fork)) {
            Ok(view) => Forked::Sandbox(Box::new(view)),
            Err(error) => Forked::Error(E2bError::from(&error)),
        };
    let forks = forks.into_iter().map(view).collect();
    Ok((StatusCode::CREATED, Json(forks)))
}
