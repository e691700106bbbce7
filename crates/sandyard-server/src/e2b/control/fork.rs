//! `POST /sandboxes/{id}/fork`.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use sandyard_service::{ForkRequest, Sandbox, ServiceResult};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::create::{Life, duration};
use super::name::{self, Named};
use super::view::SandboxView;
use crate::access::Authenticated;
use crate::app::App;
use crate::bounds::Whole;
use crate::e2b::error::E2bError;
use crate::error::ApiError;
use crate::extract::OptionalBody;

/// How long a fork lives if its maker does not say.
const LIFE: Duration = Duration::from_secs(15);

/// Copies to be made.
#[derive(Default, Deserialize, ToSchema)]
#[schema(as = E2bFork)]
pub(crate) struct Fork {
    /// Seconds each one lives.
    #[schema(inline)]
    timeout: Option<Life>,
    /// How many; one if it is left out.
    #[schema(inline)]
    count: Option<Whole<1, 20>>,
}

/// A copy, or why there is none.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = E2bForkResult)]
pub(crate) enum Forked {
    /// It runs.
    Sandbox(Box<SandboxView>),
    /// It failed; the others may not have.
    Error(E2bError),
}

/// Makes other sandboxes from the files of this one, all as they are at one moment. Each succeeds or fails by itself.
#[utoipa::path(
    post, path = "/e2b/sandboxes/{id}/fork", operation_id = "e2b_fork", tag = "e2b",
    params(Named), request_body = Option<Fork>,
    responses((status = 201, description = "One result for each.", body = Vec<Forked>))
)]
pub(crate) async fn e2b_fork(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    named: Named,
    OptionalBody(wanted): OptionalBody<Option<Fork>>,
) -> Result<(StatusCode, Json<Vec<Forked>>), ApiError> {
    let wanted = wanted.unwrap_or_default();
    let sandbox = name::existing(&app, &caller, &named.id).await?;
    let request = ForkRequest {
        timeout: Some(wanted.timeout.map_or(LIFE, duration)),
        ..ForkRequest::default()
    };
    let count = wanted.count.map_or(1, |count| count.0 as usize);
    let id = sandbox.id.as_str();
    let made = app.service().fork_many(&caller, id, request, count).await?;
    let view = |made: ServiceResult<Sandbox>| match made
        .and_then(|fork| SandboxView::new(&app, &caller, &fork))
    {
        Ok(view) => Forked::Sandbox(Box::new(view)),
        Err(error) => Forked::Error(E2bError::from(&error)),
    };
    let forks = made.into_iter().map(view).collect();
    Ok((StatusCode::CREATED, Json(forks)))
}
