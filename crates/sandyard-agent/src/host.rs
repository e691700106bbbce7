//! Routes that only the host may use.

use http::StatusCode;
use sandyard_wire::ConnectError;
use sandyard_wire::host::InitRequest;

use crate::call::{Call, Response, empty_reply, json_reply, plain_error};

/// Reports what the sandbox is busy with.
pub(crate) fn activity(call: &Call) -> Response {
    let processes = call.agent.processes.running();
    json_reply(&call.agent.counters.report(processes))
}

/// Applies settings. A ready sandbox gets its owner's settings this way.
pub(crate) async fn init(call: &mut Call) -> Response {
    match apply(call).await {
        Ok(()) => empty_reply(StatusCode::NO_CONTENT),
        Err(error) => plain_error(StatusCode::BAD_REQUEST, error.message),
    }
}

async fn apply(call: &mut Call) -> Result<(), ConnectError> {
    let mut request: InitRequest = call.message().await?;
    if let Some(hostname) = request.hostname.take() {
        rustix::system::sethostname(hostname.as_bytes()).map_err(|error| {
            ConnectError::invalid_argument(format!("cannot set host name '{hostname}': {error}"))
        })?;
    }
    let has_new_token = {
        let mut settings = call.agent.settings.borrow_mut();
        let before = settings.access_token.clone();
        settings.apply(request);
        settings.access_token != before
    };
    if has_new_token {
        // It knows the old token, and belongs to the old token's owner.
        call.agent.tools.end().await;
    }
    call.agent.counters.set_initialised();
    Ok(())
}
