//! How a private preview is opened.
//!
//! ```text
//! header  X-Sandyard-Token           programs                → in
//! query   ?sandyard_token=…          a link, in a browser    → cookie, redirect to the URL without the token
//!                                    anything else           → in
//! cookie  sandyard_preview           what follows the link   → in, unless another site asks
//! ```
//!
//! Pure logic: whether a token is good is asked of the caller. The cookie is bound to the host in the host form and to
//! the path of the port in the path form, so each port is opened on its own. Browsers send a cookie whichever page makes
//! the request, so it is not accepted for requests from pages of others: a neighbouring preview is "same site" to a
//! browser, and WebSockets know no CORS.

use http::header::{
    ACCEPT, CACHE_CONTROL, HeaderMap, HeaderName, HeaderValue, LOCATION, ORIGIN, REFERRER_POLICY,
    SET_COOKIE,
};
use http::request::Parts;
use http::{Method, Response, StatusCode};

use crate::address::{Domains, PreviewAddress, PreviewForm};
use crate::body::{self, PreviewBody};
use crate::names::{TOKEN_COOKIE, TOKEN_HEADERS};
use crate::target::Scheme;
use crate::{cookie, hop, query};

/// Maximum length of a token; longer ones are ignored.
const MAX_TOKEN_LEN: usize = 2048;

/// Maximum number of cookies of this name that are tried: neighbours can add to them.
const MAX_COOKIES: usize = 8;

const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Where a request arrived.
#[derive(Clone, Copy, Debug)]
pub struct RequestContext<'a> {
    /// The preview it is for.
    pub address: &'a PreviewAddress,
    /// The host it named: what [`crate::address::host_of`] said.
    pub host: &'a str,
    /// Whether it came over TLS.
    pub scheme: Scheme,
    /// Hosts of previews, to know the other ports of the same sandbox.
    pub domains: &'a Domains,
}

/// What a request may do.
#[derive(Debug)]
pub enum Access {
    /// It may pass.
    Granted(Via),
    /// The link was good: the browser gets its cookie and comes back.
    Redirect(Redirect),
    /// It may not.
    Denied(Denial),
}

/// What opened the preview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// A header.
    Header,
    /// The query.
    Query,
    /// The cookie.
    Cookie,
}

/// Why a preview stays closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// There is no token.
    Missing,
    /// There are tokens, none of them good.
    Refused,
    /// There is a cookie, and a page of another site is using it.
    Foreign,
}

/// A cookie and the URL to return to.
#[derive(Clone, PartialEq, Eq)]
pub struct Redirect {
    location: HeaderValue,
    set_cookie: HeaderValue,
}

impl std::fmt::Debug for Redirect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Redirect")
            .field("location", &self.location)
            .finish_non_exhaustive()
    }
}

impl Redirect {
    /// Makes the response.
    pub fn into_response(self) -> Response<PreviewBody> {
        let mut response = Response::new(body::empty());
        *response.status_mut() = StatusCode::SEE_OTHER;
        let headers = response.headers_mut();
        headers.insert(LOCATION, self.location);
        headers.insert(SET_COOKIE, self.set_cookie);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        response
    }
}

/// Decides about a request for a private preview. `is_good` says whether a token opens this sandbox and port.
pub fn open(
    parts: &Parts,
    context: RequestContext<'_>,
    mut is_good: impl FnMut(&str) -> bool,
) -> Access {
    let mut denial = Denial::Missing;
    for (via, token) in offers(parts) {
        if via == Via::Cookie && is_foreign(&parts.headers, context) {
            denial = Denial::Foreign;
            continue;
        }
        if !is_good(&token) {
            denial = Denial::Refused;
            continue;
        }
        let redirect = (via == Via::Query && is_navigation(parts))
            .then(|| redirect(parts, context, &token))
            .flatten();
        return redirect.map_or(Access::Granted(via), Access::Redirect);
    }
    Access::Denied(denial)
}

/// Gives the tokens a request offers, in the order they are tried. Bounded in number and length.
pub fn offers(parts: &Parts) -> Vec<(Via, String)> {
    let headers = TOKEN_HEADERS
        .into_iter()
        .filter_map(|name| parts.headers.get(name)?.to_str().ok())
        .map(|token| (Via::Header, token.to_owned()));
    let query = parts.uri.query().and_then(query::token);
    let query = query.into_iter().map(|token| (Via::Query, token));
    let cookies = cookie::values(&parts.headers, TOKEN_COOKIE)
        .take(MAX_COOKIES)
        .map(|token| (Via::Cookie, token.to_owned()));
    headers
        .chain(query)
        .chain(cookies)
        .filter(|(_, token)| !token.is_empty() && token.len() <= MAX_TOKEN_LEN)
        .collect()
}

/// Tells whether somebody opens a page, as opposed to a page or program fetching something.
fn is_navigation(parts: &Parts) -> bool {
    let headers = &parts.headers;
    let mode = headers.get(SEC_FETCH_MODE);
    parts.method == Method::GET
        && accepts_html(headers)
        && hop::upgrade(headers).is_none()
        && mode.is_none_or(|mode| mode == "navigate")
}

/// Tells whether a person is looking.
pub fn accepts_html(headers: &HeaderMap) -> bool {
    hop::tokens(headers, &ACCEPT).any(|range| {
        let kind = range.split(';').next().unwrap_or(range).trim();
        kind.eq_ignore_ascii_case("text/html")
    })
}

/// Tells whether a page other than the sandbox's own has made the browser ask.
fn is_foreign(headers: &HeaderMap, context: RequestContext<'_>) -> bool {
    let in_path = context.address.form == PreviewForm::Path;
    if let Some(origin) = headers.get(ORIGIN) {
        // Pages in the path form have an opaque origin: their own requests say `null`, and so do their neighbours'.
        // A neighbour may send a form and sees nothing of the answer; over a WebSocket it would see all.
        let own = origin.to_str().is_ok_and(|origin| match origin {
            "null" => in_path && hop::upgrade(headers).is_none(),
            _ => is_own_origin(origin, context),
        });
        return !own;
    }
    let is = |name: &HeaderName, value: &str| headers.get(name).is_some_and(|text| text == value);
    let navigates = is(&SEC_FETCH_MODE, "navigate");
    let from_elsewhere = is(&SEC_FETCH_SITE, "cross-site") || is(&SEC_FETCH_SITE, "same-site");
    from_elsewhere && !navigates && !in_path
}

fn is_own_origin(origin: &str, context: RequestContext<'_>) -> bool {
    let Some((_, host)) = origin.split_once("://") else {
        return false;
    };
    host.eq_ignore_ascii_case(context.host)
        || context
            .domains
            .parse(host)
            .is_some_and(|other| other.sandbox == context.address.sandbox)
}

/// Makes the cookie and the redirect; `None` when the token cannot be a cookie.
fn redirect(parts: &Parts, context: RequestContext<'_>, token: &str) -> Option<Redirect> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=:".contains(&byte);
    if !token.bytes().all(is_plain) {
        return None;
    }
    let path = match context.address.form {
        PreviewForm::Host => "/".to_owned(),
        PreviewForm::Path => context.address.prefix(),
    };
    let secure = match context.scheme {
        Scheme::Https => "; Secure",
        Scheme::Http => "",
    };
    let cookie = format!("{TOKEN_COOKIE}={token}; Path={path}; HttpOnly; SameSite=Lax{secure}");
    Some(Redirect {
        location: HeaderValue::try_from(return_path(parts)).ok()?,
        set_cookie: HeaderValue::try_from(cookie).ok()?,
    })
}

/// Returns the same path without the token, in a form that keeps a browser on this host.
fn return_path(parts: &Parts) -> String {
    let path_and_query = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let clean = query::scrub(path_and_query);
    // `//evil.example` would be another host; `/.//evil.example` is the same path on this one.
    match clean.as_bytes() {
        [b'/', b'/' | b'\\', ..] => format!("/.{clean}"),
        [b'/', ..] => clean,
        _ => "/".to_owned(),
    }
}

#[cfg(test)]
#[path = "access_tests.rs"]
mod tests;
