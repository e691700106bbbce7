//! Who may ask what.

use std::time::{SystemTime, UNIX_EPOCH};

use http::{Method, StatusCode};
use sandyard_wire::routes::{self, header, query};
use sandyard_wire::signature::{self, Operation, SignedUrl};

use crate::call::{Call, Door, Response, plain_error};
use crate::query::Query;

/// Lets a request pass or says why not.
///
/// The host is trusted. Whoever comes by TCP shows the access token, if there is one; for one file a signature made
/// with it does too, and a signature that is shown has to be good at either door. The agent's port is reached by every user
/// inside, and from outside through previews, so not even the variables are told there without a key: the start program
/// has one of its own for them, see [`crate::start`].
#[expect(
    clippy::result_large_err,
    reason = "the answer is sent at once, not carried around"
)]
pub(crate) fn check(call: &Call) -> Result<(), Response> {
    let settings = call.agent.settings.borrow();
    if call.path() == routes::HEALTH {
        return Ok(());
    }
    let Some(token) = settings.access_token.as_deref() else {
        return match call.door {
            Door::Inside if settings.needs_token => Err(unauthorized()),
            _ => Ok(()),
        };
    };
    let shown = call.header(header::ACCESS_TOKEN);
    if shown.is_some_and(|shown| signature::secrets_match(shown, token)) {
        return Ok(());
    }
    // The start program's own key opens the sandbox's variables and nothing else.
    if call.path() == routes::ENVS
        && shown.is_some_and(|shown| call.agent.start.is_envs_token(shown))
    {
        return Ok(());
    }
    if call.path() == routes::FILES
        && let Some(checked) = check_signature(call, token)
    {
        return checked;
    }
    match call.door {
        Door::Host => Ok(()),
        Door::Inside => Err(unauthorized()),
    }
}

fn unauthorized() -> Response {
    plain_error(
        StatusCode::UNAUTHORIZED,
        "unauthorized access, please provide a valid access token or a signature",
    )
}

/// Checks the signature of a file URL; none when there is none.
fn check_signature(call: &Call, token: &str) -> Option<Result<(), Response>> {
    let query = Query::of(&call.parts.uri);
    let shown = query.get(query::SIGNATURE)?;
    let expiration = query.get(query::SIGNATURE_EXPIRATION);
    let url = SignedUrl {
        path: query.get(query::PATH).unwrap_or_default(),
        operation: if call.parts.method == Method::POST {
            Operation::Write
        } else {
            Operation::Read
        },
        user: query.get(query::USERNAME).unwrap_or_default(),
        expiration: expiration.and_then(|text| text.parse().ok()),
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
    let checked = signature::verify(&url, token, shown, now);
    Some(checked.map_err(|error| plain_error(StatusCode::UNAUTHORIZED, error.to_string())))
}
