//! When the server requires credentials, and when it refuses to start.
//!
//! The promise: nobody but this machine's users ever reaches a sandbox without a credential. What makes it hold:
//!
//! - *Reachable by others* is a server with a listener on any address but loopback, that of E2B's API included; or one with a loopback listener and a
//!   proxy in front, which shows as `server.public_url` with a host of its own or as `server.trusted_proxies`.
//! - Where others can reach it, `auto` means the same as `required`, on every listener: behind a proxy, requests from
//!   the internet arrive over loopback.
//! - `open` is refused there. There is no flag to insist.
//! - `auto` and `required` are not refused there, on `0.0.0.0` either, although no credential is *configured*: there is no
//!   state without one. Before a listener opens, the server makes an admin key if the store has no credential at all,
//!   keeps it with mode 0600 in the data directory, and shows it once if it is started on a terminal. So at least one credential exists and the operator
//!   knows it. Asking people to write a key into a file first would make the safe way the harder one.

use std::net::IpAddr;

use crate::kind::url::http_host;
use crate::problem::Problem;
use crate::settings::{AuthMode, Settings};

/// Refuses settings that would let anybody in: `auth.mode = "open"` where others can reach the server.
///
/// The module's text has the reasons. The caller's part: make the admin key before any listener opens.
pub fn check_binding(settings: &Settings) -> Result<(), Box<Problem>> {
    if settings.auth.mode != AuthMode::Open {
        return Ok(());
    }
    match reachable_by(settings) {
        None => Ok(()),
        Some(how) => Err(Box::new(Problem::new(format!(
            "other machines could use the server without a key: {how}"
        ))
        .about("auth.mode")
        .hint("set `auth.mode` to `auto` or `required` (SANDYARD_AUTH_MODE=required), or listen on loopback only (SANDBOX_SERVER_HOST=127.0.0.1) with no proxy in front"))),
    }
}

/// Tells whether the native and the Docker-style dialect ask for no credentials on a listener at `address`.
pub fn is_open(settings: &Settings, address: IpAddr) -> bool {
    let is_loopback = address.to_canonical().is_loopback();
    match settings.auth.mode {
        AuthMode::Required => false,
        // Checked again, so that a listener made without `check_binding` is safe as well.
        AuthMode::Auto | AuthMode::Open => is_loopback && reachable_by(settings).is_none(),
    }
}

/// Says how others can reach the server, if they can.
fn reachable_by(settings: &Settings) -> Option<String> {
    let server = &settings.server;
    let is_foreign = |host: &&IpAddr| !host.to_canonical().is_loopback();
    if let Some(host) = server.hosts.iter().find(is_foreign) {
        return Some(format!("it listens on {host}"));
    }
    if let Some(at) = settings
        .e2b
        .listeners()
        .iter()
        .find(|at| is_foreign(&&at.ip()))
    {
        return Some(format!("E2B's API listens on {}", at.ip()));
    }
    if let Some(url) = server
        .public_url
        .as_deref()
        .filter(|url| !is_loopback_url(url))
    {
        return Some(format!("its public URL is {url}"));
    }
    let proxy = server.trusted_proxies.first()?;
    Some(format!("it is behind the proxy {proxy}"))
}

/// Whether a URL leads to this machine alone.
fn is_loopback_url(url: &str) -> bool {
    let host = http_host(url).unwrap_or_default();
    let is_name = host == "localhost" || host.ends_with(".localhost");
    is_name
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.to_canonical().is_loopback())
}
