//! All routes of the agent.

use std::time::{SystemTime, UNIX_EPOCH};

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, CONTENT_TYPE, HeaderValue,
};
use http::{Method, StatusCode};
use sandyard_wire::host::InitRequest;
use sandyard_wire::query::Query;
use sandyard_wire::routes::{self, content_type, query};
use sandyard_wire::signature::{self, Operation, SignedUrl};
use sandyard_wire::{Code, ConnectError};

use super::call::{
    Call, Response, empty_reply, json_reply, plain_error, stream_error, unary_error,
};
use super::{files, filesystem, process, watch};

/// Answers one request.
pub(super) async fn answer(mut call: Call) -> Response {
    let mut reply = match call.parts.method {
        Method::OPTIONS => empty_reply(StatusCode::NO_CONTENT),
        _ => match check_signature(&call) {
            Ok(()) => dispatch(&mut call).await,
            Err(why) => plain_error(StatusCode::UNAUTHORIZED, why),
        },
    };
    let headers = reply.headers_mut();
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, POST, OPTIONS"),
        (ACCESS_CONTROL_ALLOW_HEADERS, "*, Authorization"),
        (ACCESS_CONTROL_EXPOSE_HEADERS, "*"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    reply
}

/// Verifies the signature of a URL, if it has one. All clients are on the host and trusted otherwise.
fn check_signature(call: &Call) -> Result<(), String> {
    let query = Query::of(&call.parts.uri);
    let (routes::FILES, Some(given)) = (call.path(), query.get(query::SIGNATURE)) else {
        return Ok(());
    };
    let is_write = call.parts.method == Method::POST;
    let url = SignedUrl {
        path: query.get(query::PATH).unwrap_or_default(),
        operation: if is_write {
            Operation::Write
        } else {
            Operation::Read
        },
        user: query.get(query::USERNAME).unwrap_or_default(),
        expiration: query
            .get(query::SIGNATURE_EXPIRATION)
            .and_then(|text| text.parse().ok()),
    };
    // URLs are signed with the host's clock; the instance's clock may stand still.
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |now| now.as_secs());
    let token = call.machine.settings().access_token.clone();
    let checked = signature::verify(&url, &token, given, i64::try_from(now).unwrap_or(i64::MAX));
    checked.map_err(|error| error.to_string())
}

async fn dispatch(call: &mut Call) -> Response {
    let method = call.parts.method.clone();
    match (method.as_str(), call.path()) {
        ("GET" | "HEAD", routes::HEALTH) => return empty_reply(StatusCode::NO_CONTENT),
        ("GET", routes::METRICS) => return json_reply(&call.machine.metrics()),
        ("GET", routes::ACTIVITY) => return json_reply(&call.machine.activity()),
        ("POST", routes::RELAY_FINISHED) => return empty_reply(StatusCode::NO_CONTENT),
        _ => call.machine.count_request(),
    }
    match (method.as_str(), call.path()) {
        ("GET", routes::ENVS) => json_reply(&call.machine.settings().env),
        ("GET" | "HEAD", routes::FILES) => files::get(call),
        ("POST", routes::FILES) => files::post(call).await,
        ("POST", routes::INIT) => init(call).await,
        ("GET", routes::DIAL) => {
            plain_error(StatusCode::BAD_GATEWAY, "nothing listens on the port")
        }
        ("POST", path) if is_call(path) => rpc(call).await,
        (_, path)
            if is_call(path) || matches!(path, routes::FILES | routes::ENVS | routes::METRICS) =>
        {
            plain_error(StatusCode::METHOD_NOT_ALLOWED, "method not allowed")
        }
        _ => plain_error(StatusCode::NOT_FOUND, "no such route"),
    }
}

fn is_call(path: &str) -> bool {
    path.starts_with("/process.Process/") || path.starts_with("/filesystem.Filesystem/")
}

async fn init(call: &mut Call) -> Response {
    match call.message::<InitRequest>().await {
        Ok(request) => {
            call.machine.init(request);
            empty_reply(StatusCode::NO_CONTENT)
        }
        Err(error) => plain_error(StatusCode::BAD_REQUEST, error.message),
    }
}

async fn rpc(call: &mut Call) -> Response {
    let path = call.path().to_owned();
    let is_stream = matches!(
        path.as_str(),
        routes::process::START
            | routes::process::CONNECT
            | routes::process::STREAM_INPUT
            | routes::filesystem::WATCH_DIR
    );
    let expected = match is_stream {
        true => content_type::CONNECT_JSON,
        false => content_type::JSON,
    };
    let requested_type = call.header(CONTENT_TYPE.as_str()).unwrap_or_default();
    let essence = requested_type.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case(expected) {
        let message = format!("the content type must be {expected}");
        return plain_error(StatusCode::UNSUPPORTED_MEDIA_TYPE, message);
    }
    if is_stream {
        let answer = match path.as_str() {
            routes::filesystem::WATCH_DIR => watch::watch_dir(call).await,
            _ => process::stream(call).await,
        };
        return answer.unwrap_or_else(stream_error);
    }
    let answer = match path.strip_prefix("/process.Process/") {
        Some(_) => process::unary(call).await,
        None => match watch::unary(call).await {
            Some(answer) => answer,
            None => filesystem::unary(call).await,
        },
    };
    answer.unwrap_or_else(|error| unary_error(&error))
}

/// The error of an unknown call.
pub(super) fn no_such_call() -> ConnectError {
    ConnectError::new(Code::Unimplemented, "no such call")
}
