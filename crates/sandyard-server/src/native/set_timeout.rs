//! `POST /sandboxes/schedule-timeout` = `/sandboxes/timeout`.

use axum::Json;
use axum::extract::State;
use sandyard_service::{ServiceError, TimeoutRequest};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::view::TimeoutActionWord;
use crate::app::App;
use crate::bounds::{self, LifeSeconds};
use crate::error::ApiError;
use crate::extract::{Body, sandbox_name};
use crate::need::Who;
use crate::time::optional_iso;

/// A sandbox's new time.
#[derive(Deserialize, ToSchema)]
pub(crate) struct SetTimeout {
    /// The sandbox: its id, its provider's id or its alias.
    #[schema(schema_with = bounds::sandbox_id_schema)]
    sandbox_id: String,
    /// Seconds, from now on and after every activity.
    #[schema(schema_with = bounds::life_seconds_schema)]
    timeout_seconds: Option<LifeSeconds>,
    /// The same as `timeout_seconds`.
    #[schema(schema_with = bounds::life_seconds_schema)]
    timeout: Option<LifeSeconds>,
    /// What happens then; as before if it is left out.
    action: Option<TimeoutActionWord>,
}

/// When a sandbox's time is over.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TimeoutReply {
    /// Always true; failures are HTTP errors.
    success: bool,
    /// What happened, for people.
    message: String,
    /// When its time is over if it is not used; none while it does not run.
    expires_at: Option<String>,
}

/// Gives a sandbox a new time. It stays the sandbox's own: later activity restarts it with this value.
#[utoipa::path(
    post, path = "/sandboxes/schedule-timeout", operation_id = "schedule_timeout", tag = "sandboxes",
    request_body = SetTimeout,
    responses((status = 200, description = "It is so.", body = TimeoutReply))
)]
pub(crate) async fn schedule_timeout(
    State(app): State<App>,
    Who(caller): Who,
    Body(request): Body<SetTimeout>,
) -> Result<Json<TimeoutReply>, ApiError> {
    let name = sandbox_name(&request.sandbox_id)?;
    let Some(timeout) = request.timeout_seconds.or(request.timeout) else {
        return Err(
            ServiceError::invalid("timeout_seconds", "missing field `timeout_seconds`").into(),
        );
    };
    let wanted = TimeoutRequest {
        timeout: timeout.as_duration(),
        action: request.action.map(Into::into),
        expiry: None,
    };
    let service = app.service();
    let sandbox = service.set_timeout(&caller, name, wanted).await?;
    Ok(Json(TimeoutReply {
        success: true,
        message: format!("Timeout set to {} seconds", timeout.0),
        expires_at: optional_iso(service.expires_ms(&sandbox)),
    }))
}
