//! Which requests are this dialect's, and which of its two planes they mean.
//!
//! Stands before the router, since it changes paths: `/sandboxes` of this dialect is `/e2b/sandboxes` in the router's table.

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

use crate::app::{App, Listener};

/// Where the dialect is on every listener.
pub(crate) const PREFIX: &str = "/e2b";

const SANDBOX_ID: HeaderName = HeaderName::from_static("e2b-sandbox-id");
const SANDBOX_PORT: HeaderName = HeaderName::from_static("e2b-sandbox-port");
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// The port this dialect's clients know the agent by.
const AGENT_PORT: &str = "49983";

/// What a request of this dialect wants; an extension of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plane {
    /// Something about sandboxes.
    Control,
    /// Something that runs in one.
    Data(Wanted),
}

/// Whom a request of the data plane is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A port of a sandbox, as the client named them; neither is checked yet.
    Port {
        /// The sandbox.
        sandbox: String,
        /// The port.
        port: String,
    },
    /// Whichever sandbox the signature of the URL is of.
    Signed,
    /// Whichever sandbox the token is of.
    Token,
    /// It came to the data plane's own host and says of no sandbox.
    Nobody,
    /// Nobody can say: its host or its path cannot be read.
    Unreadable,
}

/// Finds out whether a request is this dialect's, and gives it the path it has in the router.
pub(crate) async fn enter(State(app): State<App>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    if let Some((plane, path)) = place(&parts, &app.settings().domain) {
        let path = match plane {
            Plane::Control => format!("{PREFIX}{path}"),
            Plane::Data(_) => path.to_owned(),
        };
        let plane = match with_path(&parts.uri, &path) {
            Some(uri) => {
                parts.uri = uri;
                plane
            }
            // As it is, the router would take it for another dialect's.
            None => Plane::Data(Wanted::Unreadable),
        };
        parts.extensions.insert(plane);
    }
    next.run(Request::from_parts(parts, body)).await
}

/// What a request of this dialect wants, and its path without our prefix; none: it is of another dialect.
fn place<'a>(request: &'a Parts, domain: &str) -> Option<(Plane, &'a str)> {
    let uri = &request.uri;
    let is_own = request
        .extensions
        .get::<Listener>()
        .is_some_and(|listener| listener.is_e2b);
    // Read as previews read it: what they take for no host of theirs is none to us, and the other way round.
    let host = match host_of(request) {
        Some(host) => Some(host),
        None if names_no_host(request) => Some(""),
        None => None,
    };
    let domains = Domains::new([domain, "localhost"]);
    // The host of a preview says all there is to say.
    if host.is_some_and(|host| domains.parse(host).is_some()) {
        return None;
    }
    let below = uri
        .path()
        .strip_prefix(PREFIX)
        .filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_named = |label| host.is_some_and(|host| domains.is_named(host, label));
    let (is_data_host, is_control_host) = (is_named("sandbox"), is_named("api"));
    if !(is_own || below.is_some() || is_data_host || is_control_host) {
        return None;
    }
    let path = match below {
        Some("") => "/",
        Some(below) => below,
        None => uri.path(),
    };
    if host.is_none() {
        return Some((Plane::Data(Wanted::Unreadable), path));
    }
    let headers = &request.headers;
    let plane = match (text(headers, &SANDBOX_ID), text(headers, &SANDBOX_PORT)) {
        _ if is_control_host || is_control_call(path, headers) => Plane::Control,
        (Some(sandbox), port) => Plane::Data(Wanted::Port {
            sandbox: sandbox.to_owned(),
            port: port.unwrap_or_default().to_owned(),
        }),
        _ if path == "/files" && has_signature(uri) => Plane::Data(Wanted::Signed),
        _ if is_agent_call(path, headers) => Plane::Data(Wanted::Token),
        _ if is_data_host || is_preflight(request) => Plane::Data(Wanted::Nobody),
        _ => Plane::Control,
    };
    Some((plane, path))
}

/// Says whether a request that names a sandbox's agent is about the sandbox all the same.
///
/// COMPAT(e2b): SDKs around 2.8 send a connect with the headers of both planes; the agent has no such path.
fn is_control_call(path: &str, headers: &HeaderMap) -> bool {
    let names_agent = text(headers, &SANDBOX_PORT) == Some(AGENT_PORT);
    let has_key = headers.contains_key(&API_KEY);
    let is_about = ["/sandboxes/", "/v2/sandboxes/"]
        .iter()
        .any(|start| path.starts_with(start));
    names_agent && has_key && is_about
}

/// Says whether a request is for an agent although it does not say for which.
///
/// COMPAT(e2b): in 2.8, what `connect` returns sends the token and no more.
fn is_agent_call(path: &str, headers: &HeaderMap) -> bool {
    let is_the_agents = matches!(path, routes::FILES | routes::HEALTH | routes::METRICS)
        || path.starts_with("/process.Process/")
        || path.starts_with("/filesystem.Filesystem/");
    is_the_agents && headers.contains_key(ACCESS_TOKEN) && !headers.contains_key(&API_KEY)
}

/// Says whether a browser asks beforehand for what would name a sandbox.
fn is_preflight(request: &Parts) -> bool {
    request.method == Method::OPTIONS
        && text(&request.headers, &ACCESS_CONTROL_REQUEST_HEADERS)
            .is_some_and(|names| names.to_ascii_lowercase().contains(SANDBOX_ID.as_str()))
}

/// Says whether a request leaves out its host, as old clients may.
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
#[path = "door_tests.rs"]
mod tests;
