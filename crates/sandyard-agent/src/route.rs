//! All routes.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, CONNECTION, CONTENT_TYPE, EXPECT,
    HeaderValue,
};
use http::{Method, StatusCode};
use sandyard_wire::ConnectError;
use sandyard_wire::routes::{self, content_type};

use crate::call::{
    Call, Origin, Response, empty_reply, json_reply, plain_error, stream_error, unary_error,
};
use crate::{auth, dial, egress, files, filesystem, host, process, watch};

/// Answers one request.
pub(crate) async fn answer(mut call: Call) -> Response {
    let mut reply = match call.parts.method {
        Method::OPTIONS => empty_reply(StatusCode::NO_CONTENT),
        _ => match auth::check(&call) {
            Ok(()) => dispatch(&mut call).await,
            Err(refusal) => refusal,
        },
    };
    allow_browsers(&mut reply);
    settle_body(&mut call, &mut reply).await;
    reply
}

/// Makes sure that a client does not send its next request on a connection that ends with this one.
///
/// The next head can only be read after the whole body. Where the rest of the body is too long to read, the answer closes
/// the connection.
async fn settle_body(call: &mut Call, reply: &mut Response) {
    if call.body.is_at_end() || reply.status() == StatusCode::SWITCHING_PROTOCOLS {
        return;
    }
    // Reading would make the client send a body that it holds back until it is accepted.
    let is_held_back = call.headers().contains_key(EXPECT);
    if is_held_back || !call.body.drain().await {
        let headers = reply.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
}

async fn dispatch(call: &mut Call) -> Response {
    let method = call.parts.method.clone();
    match (method.as_str(), call.path()) {
        ("GET" | "HEAD", routes::HEALTH) => return empty_reply(StatusCode::NO_CONTENT),
        ("GET", routes::METRICS) => return json_reply(&call.agent.meter.read()),
        ("GET", routes::ACTIVITY) if call.origin == Origin::Host => return host::activity(call),
        // Not counted as activity, like the routes above.
        ("GET", routes::EGRESS) if call.origin == Origin::Host => return egress::attach(call),
        ("POST", routes::RELAY_FINISHED) if call.origin == Origin::Host => {
            return process::finish_relay(call);
        }
        ("GET", routes::COMMANDS) => return json_reply(&call.agent.processes.list_retained()),
        ("POST", routes::RELEASE_COMMANDS) => return process::release(call).await,
        _ => call.agent.counters.add_request(),
    }
    match (method.as_str(), call.path()) {
        ("GET", routes::ENVS) => json_reply(&call.agent.settings.borrow().env),
        ("GET" | "HEAD", routes::FILES) => files::get(call).await,
        ("POST", routes::FILES) => files::post(call).await,
        ("POST", routes::INIT) if call.origin == Origin::Host => host::init(call).await,
        ("GET", routes::DIAL) if call.origin == Origin::Host => dial::dial(call).await,
        ("POST", path) if path.starts_with("/process.Process/") => rpc(call).await,
        ("POST", path) if path.starts_with("/filesystem.Filesystem/") => rpc(call).await,
        (_, path) if is_known(path) => {
            plain_error(StatusCode::METHOD_NOT_ALLOWED, "method not allowed")
        }
        _ => plain_error(StatusCode::NOT_FOUND, "route not found"),
    }
}

async fn rpc(call: &mut Call) -> Response {
    let is_stream = matches!(
        call.path(),
        routes::process::START
            | routes::process::CONNECT
            | routes::process::STREAM_INPUT
            | routes::filesystem::WATCH_DIR
    );
    let expected = if is_stream {
        content_type::CONNECT_JSON
    } else {
        content_type::JSON
    };
    if !has_type(call, expected) {
        return unsupported_type(expected);
    }
    if is_stream {
        stream(call).await.unwrap_or_else(stream_error)
    } else {
        unary(call)
            .await
            .unwrap_or_else(|error| unary_error(&error))
    }
}

async fn stream(call: &mut Call) -> Result<Response, ConnectError> {
    match call.path() {
        routes::process::START => process::start(call).await,
        routes::process::CONNECT => process::connect(call).await,
        routes::process::STREAM_INPUT => process::stream_input(call).await,
        _ => watch::watch_dir(call).await,
    }
}

async fn unary(call: &mut Call) -> Result<Response, ConnectError> {
    if let Some(answer) = process::unary(call).await {
        return answer;
    }
    if let Some(answer) = watch::unary(call).await {
        return answer;
    }
    if let Some(answer) = filesystem::unary(call).await {
        return answer;
    }
    Err(ConnectError::new(
        sandyard_wire::Code::Unimplemented,
        "unknown method",
    ))
}

fn is_known(path: &str) -> bool {
    matches!(
        path,
        routes::HEALTH | routes::METRICS | routes::ENVS | routes::FILES
    ) || path.starts_with("/process.Process/")
        || path.starts_with("/filesystem.Filesystem/")
}

fn has_type(call: &Call, expected: &str) -> bool {
    let given = call.header(CONTENT_TYPE.as_str()).unwrap_or_default();
    let essence = given.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case(expected)
}

fn unsupported_type(expected: &'static str) -> Response {
    let mut reply = plain_error(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        format!("the content type has to be {expected}"),
    );
    reply
        .headers_mut()
        .insert("accept-post", HeaderValue::from_static(expected));
    reply
}

/// Allows browsers of any origin: the token protects the sandbox, not the origin.
fn allow_browsers(reply: &mut Response) {
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, POST, OPTIONS"),
        (ACCESS_CONTROL_ALLOW_HEADERS, "*, Authorization"),
        (ACCESS_CONTROL_EXPOSE_HEADERS, "*"),
        (ACCESS_CONTROL_MAX_AGE, "7200"),
    ] {
        reply
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
}
