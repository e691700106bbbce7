//! VS Code needs a host of its own: it uses the browser's storage and a service worker, which pages below `/p/` do not have, because
//! their origin is opaque.

use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sandyard_preview::access::accepts_html;
use sandyard_preview::{PreviewAddress, PreviewForm, Problem, UrlForm, url_for};

use super::error_presenter::ErrorPresenter;
use crate::app::App;
use crate::forwarding;
use crate::listen::Listener;
use crate::middleware::open_listener::is_own_host;

/// The domain that every browser resolves to its own host.
const LOCALHOST: &str = "localhost";

/// Redirects a browser that opens VS Code below `/p/` to its host, or explains that it has none.
pub(super) fn redirect(
    app: &App,
    parts: &Parts,
    address: &PreviewAddress,
    host: &str,
    errors: &ErrorPresenter<'_>,
) -> Option<Response> {
    let is_page = parts.method == Method::GET && accepts_html(&parts.headers);
    if address.form != PreviewForm::Path || address.port != app.settings().vscode_port || !is_page {
        return None;
    }
    let listener = parts.extensions.get::<Listener>().copied();
    let domain = app.settings().domain.as_str();
    let host: Option<Authority> = host.parse().ok();
    // The redirect would lead a remote browser, behind a proxy or a tunnel, to its own host.
    let is_local = listener.is_some_and(|listener| listener.is_loopback())
        && host
            .as_ref()
            .is_some_and(|host| is_own_host(host.host(), ""));
    if (domain.is_empty() || domain == LOCALHOST) && !is_local {
        return Some(errors.problem(Problem::NeedsDomain));
    }
    let domain = if domain.is_empty() { LOCALHOST } else { domain };
    let port = host.and_then(|host| host.port_u16());
    let base = port.map_or_else(|| domain.to_owned(), |port| format!("{domain}:{port}"));
    let scheme = forwarding::scheme(app, listener);
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
    let headers = [
        (header::LOCATION, HeaderValue::try_from(location).ok()?),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (
            header::REFERRER_POLICY,
            HeaderValue::from_static("no-referrer"),
        ),
    ];
    Some((StatusCode::TEMPORARY_REDIRECT, headers).into_response())
}
