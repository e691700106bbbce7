//! Leads browsers from `/p/` to the host of a port: below `/p/`, absolute paths lead out of the application, and its pages have no
//! storage, cookies, modules or service workers, because their origin is opaque. VS Code does not work there at all.

use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sandyard_preview::access::accepts_html;
use sandyard_preview::{PreviewAddress, PreviewForm, Problem, UrlForm, url_for};

use super::error_presenter::ErrorPresenter;
use crate::app::App;
use crate::forwarding;
use crate::links::is_local;
use crate::listen::Listener;

/// The domain that every browser resolves to its own host.
const LOCALHOST: &str = "localhost";

/// Redirects a browser that opens a port below `/p/` to the port's host, if it can reach that. Explains for VS Code that it cannot.
pub(super) fn redirect(
    app: &App,
    parts: &Parts,
    address: &PreviewAddress,
    host: &str,
    errors: &ErrorPresenter<'_>,
) -> Option<Response> {
    let is_page = parts.method == Method::GET && accepts_html(&parts.headers);
    let is_editor = address.port == app.settings().vscode_port;
    if address.form != PreviewForm::Path || !is_page || !(is_editor || is_navigation(parts)) {
        return None;
    }
    let listener = parts.extensions.get::<Listener>().copied();
    let domain = app.settings().domain.as_str();
    let host: Option<Authority> = host.parse().ok();
    let is_reachable =
        !(domain.is_empty() || domain == LOCALHOST) || is_local(listener.as_ref(), host.as_ref());
    if !is_reachable {
        return is_editor.then(|| errors.problem(Problem::NeedsDomain));
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

/// Whether a browser opens a page, in a tab or in a frame: programs that read pages send no such header.
fn is_navigation(parts: &Parts) -> bool {
    let mode = parts.headers.get("sec-fetch-mode");
    mode.is_some_and(|mode| mode == "navigate")
}
