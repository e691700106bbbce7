//! Which requests are this dialect's, and which of its two planes they mean.
//!
//! Stands before the router, since it changes paths: `/sandboxes` of this dialect is `/e2b/sandboxes` in the router's table.

use axum::extract::{Request, State};
use axum::http::uri::{PathAndQuery, Uri};
use axum::http::header::ACCESS_CONTROL_REQUEST_HEADERS;
use axum::http::{HeaderMap, HeaderName, Method};
use axum::middleware::Next;
use axum::response::Response;
use sandyard_agent_client::wire::routes::{self, header::ACCESS_TOKEN};
use sandyard_preview::Domains;

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
}

/// Finds out whether a request is this dialect's, and gives it the path it has in the router.
pub(crate) async fn enter(State(app): State<App>, mut request: Request, next: Next) -> Response {
    if let Some((plane, path)) = place(&request, &app.settings().domain) {
        let path = match plane {
            Plane::Control => format!("{PREFIX}{path}"),
            Plane::Data(_) => path.to_owned(),
        };
        if let Some(uri) = with_path(request.uri(), &path) {
            *request.uri_mut() = uri;
            request.extensions_mut().insert(plane);
        }
    }
    next.run(request).await
}

/// What a request of this dialect wants, and its path without our prefix; none: it is of another dialect.
fn place<'a>(request: &'a Request, domain: &str) -> Option<(Plane, &'a str)> {
    let uri = request.uri();
    let is_own = request
        .extensions()
        .get::<Listener>()
        .is_some_and(|listener| listener.is_e2b);
    let host = host(request).unwrap_or_default();
    // The host of a preview says all there is to say.
    if Domains::new([domain, "localhost"]).parse(&host).is_some() {
        return None;
    }
    let below = uri
        .path()
        .strip_prefix(PREFIX)
        .filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_data_host = is_named(&host, "sandbox", domain);
    let is_control_host = is_named(&host, "api", domain);
    if !(is_own || below.is_some() || is_data_host || is_control_host) {
        return None;
    }
    let path = match below {
        Some("") => "/",
        Some(below) => below,
        None => uri.path(),
    };
    let headers = request.headers();
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
fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS
        && text(request.headers(), &ACCESS_CONTROL_REQUEST_HEADERS)
            .is_some_and(|names| names.to_ascii_lowercase().contains(SANDBOX_ID.as_str()))
}

/// The host a request names, lower-case and without port.
fn host(request: &Request) -> Option<String> {
    let host = match request.uri().host() {
        Some(host) => host,
        None => host_of_headers(request.headers())?,
    };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    Some(name.trim_end_matches('.').to_ascii_lowercase())
}

fn host_of_headers(headers: &HeaderMap) -> Option<&str> {
    headers.get(axum::http::header::HOST)?.to_str().ok()
}

fn is_named(host: &str, label: &str, domain: &str) -> bool {
    host.split_once('.')
        .is_some_and(|(first, rest)| first == label && (rest == domain || rest == "localhost"))
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
mod tests {
    use axum::body::Body;

    use super::*;

    fn placed(
        is_e2b: bool,
        host: &str,
        uri: &str,
        headers: &[(&str, &str)],
    ) -> Option<(Plane, String)> {
        let mut builder = Request::builder().uri(uri).header("host", host);
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        let mut request = builder.body(Body::empty()).unwrap();
        request.extensions_mut().insert(Listener {
            address: "127.0.0.1:8101".parse().unwrap(),
            is_tls: false,
            is_e2b,
            peer: "127.0.0.1:5555".parse().unwrap(),
        });
        place(&request, "sbx.test").map(|(plane, path)| (plane, path.to_owned()))
    }

    fn control(path: &str) -> Option<(Plane, String)> {
        Some((Plane::Control, path.to_owned()))
    }

    fn data(path: &str) -> Option<(Plane, String)> {
        let wanted = Wanted::Port {
            sandbox: "abc".to_owned(),
            port: "49983".to_owned(),
        };
        Some((Plane::Data(wanted), path.to_owned()))
    }

    const PORT: [(&str, &str); 2] = [("E2b-Sandbox-Id", "abc"), ("E2b-Sandbox-Port", "49983")];

    #[test]
    fn the_dialect_has_three_places() {
        assert_eq!(
            placed(true, "127.0.0.1:8101", "/sandboxes", &[]),
            control("/sandboxes")
        );
        assert_eq!(
            placed(false, "api.sbx.test:443", "/sandboxes", &[]),
            control("/sandboxes")
        );
        assert_eq!(
            placed(false, "127.0.0.1:8100", "/e2b/sandboxes", &[]),
            control("/sandboxes")
        );
        assert_eq!(placed(false, "127.0.0.1:8100", "/e2b", &[]), control("/"));
        assert_eq!(placed(false, "127.0.0.1:8100", "/sandboxes", &[]), None);
        assert_eq!(placed(false, "127.0.0.1:8100", "/e2bx", &[]), None);
        assert_eq!(placed(false, "api.other.test", "/sandboxes", &[]), None);
    }

    #[test]
    fn headers_say_which_plane_is_meant() {
        assert_eq!(
            placed(true, "127.0.0.1:8101", "/health", &PORT),
            data("/health")
        );
        assert_eq!(
            placed(true, "127.0.0.1:8101", "/health", &[]),
            control("/health")
        );
        assert_eq!(
            placed(false, "sandbox.sbx.test", "/files?path=a", &PORT),
            data("/files")
        );
        assert_eq!(
            placed(false, "localhost:8100", "/e2b/files", &PORT),
            data("/files")
        );
        assert_eq!(placed(false, "localhost:8100", "/files", &PORT), None);
        let nobody = Some((Plane::Data(Wanted::Nobody), "/".to_owned()));
        assert_eq!(placed(false, "sandbox.sbx.test", "/", &[]), nobody);
    }

    #[test]
    fn a_key_and_a_sandboxes_path_are_for_the_control_plane() {
        let both = [PORT[0], PORT[1], ("X-API-Key", "k")];
        let path = "/sandboxes/abc/connect";
        assert_eq!(placed(true, "127.0.0.1:8101", path, &both), control(path));
        assert_eq!(placed(false, "api.sbx.test", path, &PORT), control(path));
        assert_eq!(placed(true, "127.0.0.1:8101", path, &PORT), data(path));
        assert_eq!(
            placed(true, "127.0.0.1:8101", "/files", &both),
            data("/files")
        );
    }

    #[test]
    fn signed_links_need_no_headers() {
        let signed = Some((Plane::Data(Wanted::Signed), "/files".to_owned()));
        let uri = "/files?path=a&signature=v1_x";
        assert_eq!(placed(true, "127.0.0.1:8101", uri, &[]), signed);
        assert_eq!(placed(false, "sandbox.sbx.test", uri, &[]), signed);
        assert_eq!(placed(false, "127.0.0.1:8100", uri, &[]), None);
    }

    #[test]
    fn a_token_alone_names_its_sandbox() {
        let token = [("X-Access-Token", "secret")];
        let placed_at = |path| placed(true, "127.0.0.1:8101", path, &token);
        let found = |path: &str| Some((Plane::Data(Wanted::Token), path.to_owned()));
        assert_eq!(placed_at("/files"), found("/files"));
        let start = "/process.Process/Start";
        assert_eq!(placed_at(start), found(start));
        assert_eq!(placed_at("/sandboxes"), control("/sandboxes"));
        let both = [("X-Access-Token", "secret"), ("X-API-Key", "e2b_0")];
        assert_eq!(
            placed(true, "127.0.0.1:8101", "/health", &both),
            control("/health")
        );
    }

    #[test]
    fn hosts_of_previews_are_left_alone() {
        assert_eq!(
            placed(true, "3000-abc.localhost:8101", "/sandboxes", &[]),
            None
        );
        assert_eq!(placed(true, "49983-abc.sbx.test", "/files", &PORT), None);
    }
}
