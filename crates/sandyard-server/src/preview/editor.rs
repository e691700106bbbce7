//! VS Code needs a host of its own: it keeps things in the browser's storage and runs a service worker, and neither is there for
//! pages below `/p/`, which have no origin.

use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sandyard_preview::access::accepts_html;
use sandyard_preview::{PreviewAddress, PreviewForm, Problem, UrlForm, url_for};

use super::way;
use super::words::Words;
use crate::app::{App, Listener};
use crate::middleware::open_listener::is_ours;

/// The domain every browser finds on its own host.
const LOCALHOST: &str = "localhost";

/// Sends a browser that opens VS Code below `/p/` to the host it has, or says that there is none.
pub(super) fn elsewhere(
    app: &App,
    parts: &Parts,
    address: &PreviewAddress,
    host: &str,
    words: &Words<'_>,
) -> Option<Response> {
    let is_page = parts.method == Method::GET && accepts_html(&parts.headers);
    if address.form != PreviewForm::Path || address.port != app.settings().vscode_port || !is_page {
        return None;
    }
    let listener = parts.extensions.get::<Listener>().copied();
    let domain = app.settings().domain.as_str();
    let host: Option<Authority> = host.parse().ok();
    // A browser elsewhere, that came through a proxy or a tunnel, would be sent to its own host.
    let is_local = listener.is_some_and(|listener| listener.is_loopback())
        && host.as_ref().is_some_and(|host| is_ours(host.host(), ""));
    if (domain.is_empty() || domain == LOCALHOST) && !is_local {
        return Some(words.problem(Problem::NeedsDomain));
    }
    let domain = if domain.is_empty() { LOCALHOST } else { domain };
    let port = host.and_then(|host| host.port_u16());
    let base = port.map_or_else(|| domain.to_owned(), |port| format!("{domain}:{port}"));
    let scheme = way::scheme(app, listener);
    let url = url_for(
        UrlForm::PortFirst,
        scheme,
        &base,
        &address.sandbox,
        address.port,
    );
    let below = parts
        .uri
        .path()
        .strip_prefix(address.prefix().trim_end_matches('/'));
    let query = parts
        .uri
        .query()
        .map_or_else(String::new, |query| format!("?{query}"));
    let location = format!(
        "{url}/{}{query}",
        below.unwrap_or_default().trim_start_matches('/')
    );
    let mut response = StatusCode::TEMPORARY_REDIRECT.into_response();
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, HeaderValue::try_from(location).ok()?);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    );
    Some(response)
}
