//! Sets a sandbox's timeout.

use sandyard_service::TimeoutRequest;

use crate::bounds::LifeSeconds;
use crate::model::sandbox::TimeoutActionWord;
use crate::prelude::*;

/// Request to change the idle timeout. One of `timeout_seconds` and `timeout` is required.
#[derive(Deserialize, ToSchema)]
pub(crate) struct SetTimeout {
    /// Sandbox to change.
    #[schema(schema_with = bounds::sandbox_id_schema)]
    sandbox_id: String,
    /// New idle timeout in seconds.
    #[schema(schema_with = bounds::life_seconds_schema)]
    timeout_seconds: Option<LifeSeconds>,
    /// Alias of `timeout_seconds`.
    #[schema(schema_with = bounds::life_seconds_schema)]
    timeout: Option<LifeSeconds>,
    /// What happens when the idle timeout is over: `pause` or `delete`. Default: unchanged.
    action: Option<TimeoutActionWord>,
}

/// Idle timeout after the change.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TimeoutReply {
    /// Always `true`; a failed request has an error status instead.
    success: bool,
    /// Summary of the result for people.
    message: String,
    /// Time at which the sandbox expires unless it is used before (RFC 3339). Null while it is not running.
    expires_at: Option<String>,
}

/// Sets the timeout and tells when it ends.
pub(crate) async fn set_timeout(call: &Call, request: SetTimeout) -> ApiResult<TimeoutReply> {
    let name = sandbox_name(&request.sandbox_id)?;
    let Some(timeout) = request.timeout_seconds.or(request.timeout) else {
        return Err(
            ServiceError::invalid("timeout_seconds", "missing field `timeout_seconds`").into(),
        );
    };
    let change = TimeoutRequest {
        timeout: timeout.as_duration(),
        action: request.action.map(Into::into),
        expiry: None,
    };
    let service = call.service();
    let sandbox = service.set_timeout(&call.caller, name, change).await?;
    Ok(TimeoutReply {
        success: true,
        message: format!("Timeout set to {} seconds", timeout.as_duration().as_secs()),
        expires_at: optional_iso(service.expires_ms(&sandbox)),
    })
}
