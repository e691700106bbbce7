//! Decides which requests belong to this dialect, and to which of its two planes.
//!
//! It runs before the router because it changes paths: `/sandboxes` of this dialect is `/e2b/sandboxes` in the route table.

use axum::extract::{Request, State};
use axum::http::header::{ACCESS_CONTROL_REQUEST_HEADERS, HOST};
use axum::http::request::Parts;
use axum::http::uri::{PathAndQuery, Uri};
use axum::http::{HeaderMap, HeaderName, Method};
use axum::middleware::Next;
use axum::response::Response;
use sandyard_agent_client::wire::routes::{self, header::ACCESS_TOKEN};
use sandyard_preview::Domains;
use sandyard_preview::address::host_of;

use crate::app::App;
use crate::listen::Listener;

/// Path of the dialect on every listener.
pub(crate) const PREFIX: &str = "/e2b";

const SANDBOX_ID: HeaderName = HeaderName::from_static("e2b-sandbox-id");
const SANDBOX_PORT: HeaderName = HeaderName::from_static("e2b-sandbox-port");
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// Port of the agent in the headers of this dialect's clients.
const AGENT_PORT: &str = "49983";

/// The plane of a request of this dialect; an extension of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plane {
    /// Management of sandboxes.
    Control,
    /// A program in a sandbox.
    Data(DataTarget),
}

/// Where a request of the data plane goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DataTarget {
    /// A port of a sandbox, as the client named them; both are unchecked.
    Port {
        /// The sandbox.
        sandbox: String,
        /// The port.
        port: String,
    },
    /// The agent of the sandbox whose token signed the URL.
    Signed,
    /// The agent of the sandbox that has the token.
    Token,
    /// No sandbox is named, on the host of the data plane.
    Unnamed,
    /// Unknown, because the host or the path is malformed.
    Malformed,
}

/// Marks requests of this dialect with their plane, and gives them the path that they have in the router.
pub(crate) async fn dispatch(State(app): State<App>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    if let Some((plane, path)) = classify(&parts, &app.settings().domain) {
        let path = match plane {
            Plane::Control => format!("{PREFIX}{path}"),
            Plane::Data(_) => path.to_owned(),
        };
        let plane = match with_path(&parts.uri, &path) {
            Some(uri) => {
                parts.uri = uri;
                plane
            }
            // With its old path, the router would take it for a request of another dialect.
            None => Plane::Data(DataTarget::Malformed),
        };
        parts.extensions.insert(plane);
    }
    next.run(Request::from_parts(parts, body)).await
}

/// The plane of a request and its path without the prefix; none: it belongs to another dialect.
fn classify<'a>(request: &'a Parts, domain: &str) -> Option<(Plane, &'a str)> {
    let uri = &request.uri;
    let is_own_listener = request
        .extensions
        .get::<Listener>()
        .is_some_and(|listener| listener.is_e2b);
    // Read as previews read it, so that every host belongs to exactly one of the two.
    let host = match host_of(request) {
        Some(host) => Some(host),
        None if names_no_host(request) => Some(""),
        None => None,
    };
    let domains = Domains::new([domain, "localhost"]);
    // The host of a preview names sandbox and port.
    if host.is_some_and(|host| domains.parse(host).is_some()) {
        return None;
    }
    let below = uri
        .path()
        .strip_prefix(PREFIX)
        .filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_named = |label| host.is_some_and(|host| domains.is_named(host, label));
    let (is_data_host, is_control_host) = (is_named("sandbox"), is_named("api"));
    if !(is_own_listener || below.is_some() || is_data_host || is_control_host) {
        return None;
    }
    let path = match below {
        Some("") => "/",
        Some(below) => below,
        None => uri.path(),
    };
    if host.is_none() {
        return Some((Plane::Data(DataTarget::Malformed), path));
    }
    let headers = &request.headers;
    let plane = match (text(headers, &SANDBOX_ID), text(headers, &SANDBOX_PORT)) {
        _ if is_control_host || is_control_call(path, headers) => Plane::Control,
        (Some(sandbox), port) => Plane::Data(DataTarget::Port {
            sandbox: sandbox.to_owned(),
            port: port.unwrap_or_default().to_owned(),
        }),
        _ if path == "/files" && has_signature(uri) => Plane::Data(DataTarget::Signed),
        _ if is_agent_call(path, headers) => Plane::Data(DataTarget::Token),
        _ if is_data_host || is_preflight(request) => Plane::Data(DataTarget::Unnamed),
        _ => Plane::Control,
    };
    Some((plane, path))
}

/// Says whether a request is for the control plane although it names a sandbox's agent.
///
/// COMPAT(e2b): SDKs around 2.8 send a connect with the headers of both planes. The agent has no such path.
fn is_control_call(path: &str, headers: &HeaderMap) -> bool {
    let names_agent = text(headers, &SANDBOX_PORT) == Some(AGENT_PORT);
    let has_key = headers.contains_key(&API_KEY);
    let is_control_path = ["/sandboxes/", "/v2/sandboxes/"]
        .iter()
        .any(|start| path.starts_with(start));
    names_agent && has_key && is_control_path
}

/// Says whether a request is for an agent although it names no sandbox.
///
/// COMPAT(e2b): in 2.8, the object that `connect` returns sends nothing but the token.
fn is_agent_call(path: &str, headers: &HeaderMap) -> bool {
    let is_agent_path = matches!(path, routes::FILES | routes::HEALTH | routes::METRICS)
        || path.starts_with("/process.Process/")
        || path.starts_with("/filesystem.Filesystem/");
    is_agent_path && headers.contains_key(ACCESS_TOKEN) && !headers.contains_key(&API_KEY)
}

/// Says whether a request is the CORS preflight of one that will name a sandbox.
fn is_preflight(request: &Parts) -> bool {
    request.method == Method::OPTIONS
        && text(&request.headers, &ACCESS_CONTROL_REQUEST_HEADERS)
            .is_some_and(|names| names.to_ascii_lowercase().contains(SANDBOX_ID.as_str()))
}

/// Says whether a request has no host, as those of old clients may.
fn names_no_host(request: &Parts) -> bool {
    request.uri.authority().is_none() && !request.headers.contains_key(HOST)
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn has_signature(uri: &Uri) -> bool {
    uri.query()
        .is_some_and(|query| query.split('&').any(|pair| pair.starts_with("signature=")))
}

fn with_path(uri: &Uri, path: &str) -> Option<Uri> {
    let text = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(text).ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
#[path = "dispatch_tests.rs"]
mod tests;
