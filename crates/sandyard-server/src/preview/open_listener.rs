//! Which previews an open listener serves without credentials.
//!
//! The rule of the API, no web pages of other origins, is too strict for previews: people follow links to them, and in the path
//! form the requests of a page itself look like those of another origin. The requests that are allowed beyond that rule reveal
//! nothing: another origin cannot read the response, and would have to know the random id of a sandbox.

use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use sandyard_preview::{PreviewForm, RequestContext};

use crate::app::{App, AuthMode};
use crate::listen::Listener;
use crate::middleware::open_listener::check;

const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// Says whether a request for a private preview needs no credentials.
pub(super) fn may_open(app: &App, parts: &Parts, context: RequestContext<'_>) -> bool {
    let is_open = app.settings().auth_mode == AuthMode::Auto
        && parts
            .extensions
            .get::<Listener>()
            .is_some_and(Listener::is_loopback);
    if !is_open {
        return false;
    }
    let mut request = Request::new(axum::body::Body::empty());
    *request.method_mut() = parts.method.clone();
    *request.uri_mut() = parts.uri.clone();
    *request.headers_mut() = parts.headers.clone();
    let is_guarded = app.is_guarded_port(context.address.port);
    relax(request.headers_mut(), &parts.method, context, is_guarded);
    check(&request, &app.settings().domain).is_ok()
}

/// Removes headers that the API would refuse and a preview allows.
fn relax(headers: &mut HeaderMap, method: &Method, context: RequestContext<'_>, is_guarded: bool) {
    let in_path = context.address.form == PreviewForm::Path;
    if headers.contains_key(header::UPGRADE) && in_path {
        // Over a WebSocket, a page of another origin could read the responses.
        return;
    }
    let origin = headers
        .get(header::ORIGIN)
        .and_then(|origin| origin.to_str().ok());
    match origin {
        None => {
            let is_reading = matches!(*method, Method::GET | Method::HEAD);
            let navigates = headers
                .get("sec-fetch-mode")
                .is_some_and(|mode| mode == "navigate");
            if is_reading && (navigates || in_path) {
                headers.remove(SEC_FETCH_SITE);
            }
        }
        Some(origin) => {
            let is_own = match origin.split_once("://") {
                // Another port of the same sandbox.
                Some((_, host)) => context
                    .domains
                    .parse(host)
                    .is_some_and(|other| other.sandbox == context.address.sandbox),
                // Pages in the path form have an opaque origin. Other pages may have one too, so it opens no guarded port.
                None => in_path && origin == "null" && !is_guarded,
            };
            if is_own {
                headers.remove(header::ORIGIN);
                headers.remove(SEC_FETCH_SITE);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use sandyard_preview::{Domains, PreviewAddress, Scheme};

    use super::*;

    fn is_allowed(host: &str, path: &str, method: Method, headers: &[(&str, &str)]) -> bool {
        let domains = Domains::new(["localhost"]);
        let address = domains
            .parse(host)
            .or_else(|| PreviewAddress::from_path(path))
            .unwrap();
        let context = RequestContext {
            address: &address,
            host,
            scheme: Scheme::Http,
            domains: &domains,
        };
        let mut builder = Request::builder()
            .method(&method)
            .uri(path)
            .header("host", host);
        for (name, value) in headers {
            builder = builder.header(*name, *value);
        }
        let mut request = builder.body(axum::body::Body::empty()).unwrap();
        relax(
            request.headers_mut(),
            &method,
            context,
            address.port == 6060,
        );
        check(&request, "localhost").is_ok()
    }

    #[test]
    fn links_of_other_sites_open_a_preview() {
        let link = [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
        ];
        assert!(is_allowed(
            "3000-abc.localhost:8100",
            "/",
            Method::GET,
            &link
        ));
        assert!(is_allowed(
            "localhost:8100",
            "/p/abc/3000/",
            Method::GET,
            &link
        ));
        assert!(!is_allowed(
            "3000-abc.localhost:8100",
            "/",
            Method::POST,
            &link
        ));
    }

    #[test]
    fn pages_of_other_origins_cannot_send_requests_to_a_preview() {
        let evil = [
            ("origin", "http://evil.example"),
            ("sec-fetch-site", "cross-site"),
        ];
        let neighbour = [
            ("origin", "http://3000-xyz.localhost:8100"),
            ("sec-fetch-site", "same-site"),
        ];
        let image = [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "no-cors"),
        ];
        for headers in [&evil, &neighbour] {
            for method in [Method::GET, Method::POST] {
                assert!(!is_allowed("3000-abc.localhost:8100", "/", method, headers));
            }
        }
        assert!(!is_allowed(
            "3000-abc.localhost:8100",
            "/",
            Method::GET,
            &image
        ));
        assert!(!is_allowed(
            "evil.example",
            "/p/abc/3000/",
            Method::GET,
            &[]
        ));
        let socket = [("origin", "null"), ("upgrade", "websocket")];
        assert!(!is_allowed(
            "localhost:8100",
            "/p/abc/3000/",
            Method::GET,
            &socket
        ));
    }

    #[test]
    fn pages_of_the_same_sandbox_can_send_requests() {
        let other_port = [
            ("origin", "http://5173-abc.localhost:8100"),
            ("sec-fetch-site", "same-site"),
        ];
        assert!(is_allowed(
            "3000-abc.localhost:8100",
            "/api",
            Method::POST,
            &other_port
        ));
        let opaque = [("origin", "null"), ("sec-fetch-site", "cross-site")];
        assert!(is_allowed(
            "localhost:8100",
            "/p/abc/3000/form",
            Method::POST,
            &opaque
        ));
        assert!(!is_allowed(
            "localhost:8100",
            "/p/abc/6060/mcp",
            Method::POST,
            &opaque
        ));
        let script = [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "no-cors"),
        ];
        assert!(is_allowed(
            "localhost:8100",
            "/p/abc/3000/a.js",
            Method::GET,
            &script
        ));
    }
}
