//! Sets a sandbox's timeout.

use sandyard_core::Caller;
use sandyard_service::{ServiceError, TimeoutRequest};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::bounds::{self, LifeSeconds};
use crate::error::ApiError;
use crate::extract::sandbox_name;
use crate::model::sandbox::TimeoutActionWord;
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

/// Sets the timeout and tells when it ends.
pub(crate) async fn set_timeout(
    app: &App,
    caller: &Caller,
    request: SetTimeout,
) -> Result<TimeoutReply, ApiError> {
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
    let sandbox = service.set_timeout(caller, name, wanted).await?;
    Ok(TimeoutReply {
        success: true,
        message: format!("Timeout set to {} seconds", timeout.0),
        expires_at: optional_iso(service.expires_ms(&sandbox)),
    })
}
