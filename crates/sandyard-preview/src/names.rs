//! Every header, cookie and query parameter that is ours, in one place.
//!
//! None of them ever reaches a sandbox: its programs are not trusted with the credentials of people who open a preview.

use http::HeaderName;

/// The query parameter of a preview link.
pub const TOKEN_QUERY: &str = "sandyard_token";

/// The cookie a preview link is exchanged for.
pub const TOKEN_COOKIE: &str = "sandyard_preview";

/// Cookies that start like this are ours, the dashboard's included.
pub const COOKIE_PREFIX: &str = "sandyard_";

/// Carries a token on requests of programs.
pub const TOKEN_HEADER: HeaderName = HeaderName::from_static("x-sandyard-token");

/// The same in the E2B dialect.
pub const E2B_TOKEN_HEADER: HeaderName = HeaderName::from_static("e2b-traffic-access-token");

/// Headers that start like this name the sandbox and port a request is for, in the E2B dialect.
pub const E2B_SANDBOX_PREFIX: &str = "e2b-sandbox-";

/// Headers whose value may open a private preview, in the order they are tried.
pub const TOKEN_HEADERS: [HeaderName; 2] = [TOKEN_HEADER, E2B_TOKEN_HEADER];

/// Headers that are taken off every request. `Authorization` is not here: it may be meant for the sandbox.
pub const CREDENTIAL_HEADERS: [HeaderName; 3] = [
    TOKEN_HEADER,
    E2B_TOKEN_HEADER,
    HeaderName::from_static("x-api-key"),
];

/// Who asked: the address of the client.
pub const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// How it asked: `http` or `https`.
pub const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
/// What it asked: the public host.
pub const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
/// Where the public path of `/` is, in the path form.
pub const FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");

/// Tells whether a cookie of this name is ours.
pub(crate) fn is_own_cookie(name: &str) -> bool {
    name.get(..COOKIE_PREFIX.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(COOKIE_PREFIX))
}
