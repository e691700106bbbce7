//! Authorization of requests.

use std::time::{SystemTime, UNIX_EPOCH};

use http::{Method, StatusCode};
use sandyard_wire::query::Query;
use sandyard_wire::routes::{self, header, query};
use sandyard_wire::signature::{self, Operation, SignedUrl};

use crate::call::{Call, Origin, Response, plain_error};

/// Accepts a request or returns the refusal.
///
/// The host is trusted. A TCP caller must send the access token, if one is set; for one file a signature made with the
/// token suffices. A signature must be valid on both listeners. Every user inside can reach the agent's port, and previews
/// reach it from outside, so even the environment variables need a token there: the start program has its own for them,
/// see [`crate::start`].
#[expect(clippy::result_large_err, reason = "the answer is sent immediately")]
pub(crate) fn check(call: &Call) -> Result<(), Response> {
    let settings = call.agent.settings.borrow();
    if call.path() == routes::HEALTH {
        return Ok(());
    }
    let Some(token) = settings.access_token.as_deref() else {
        return match call.origin {
            Origin::Sandbox if settings.needs_token => Err(unauthorized()),
            _ => Ok(()),
        };
    };
    let presented = call.header(header::ACCESS_TOKEN);
    if presented.is_some_and(|presented| signature::secrets_match(presented, token)) {
        return Ok(());
    }
    // The start program's own token gives access to the environment variables and nothing else.
    if call.path() == routes::ENVS
        && presented.is_some_and(|presented| call.agent.start.is_envs_token(presented))
    {
        return Ok(());
    }
    if call.path() == routes::FILES
        && let Some(checked) = check_signature(call, token)
    {
        return checked;
    }
    match call.origin {
        Origin::Host => Ok(()),
        Origin::Sandbox => Err(unauthorized()),
    }
}

fn unauthorized() -> Response {
    plain_error(
        StatusCode::UNAUTHORIZED,
        "unauthorized access, please provide a valid access token or a signature",
    )
}

/// Checks the signature of a file URL; `None` when it has none.
fn check_signature(call: &Call, token: &str) -> Option<Result<(), Response>> {
    let query = Query::of(&call.parts.uri);
    let presented = query.get(query::SIGNATURE)?;
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
    let checked = signature::verify(&url, token, presented, now);
    Some(checked.map_err(|error| plain_error(StatusCode::UNAUTHORIZED, error.to_string())))
}
