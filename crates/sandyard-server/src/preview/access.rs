//! Who may open a port: everybody if its owner has made it public; else the owner, holders of a link, and programs on this host.
//!
//! E2B's clients decide it for all ports of a sandbox at once: all are public, or all require the sandbox's traffic token.
//!
//! The ports of the tool server and of VS Code are never public, and the traffic token does not open them: their clients can do
//! everything in the sandbox. The sandbox's access token opens them too, since MCP clients can send headers only.
//!
//! A sandbox that does not exist is as private as one of another user, so that nobody can tell them apart.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use sandyard_agent_client::wire::routes::{AGENT_PORT, header::ACCESS_TOKEN};
use sandyard_agent_client::wire::signature::secrets_match;
use sandyard_core::{SandboxId, Scope};
use sandyard_preview::access::open;
use sandyard_preview::names::E2B_TOKEN_HEADER;
use sandyard_preview::{Access, AuthorizationHeader, Denial, Place, PreviewBody, Problem};
use sandyard_service::Sandbox;

use super::open_listener;
use crate::app::App;
use crate::e2b::data::Outcome;
use crate::forwarding::authorization;

/// The result of checking the access to a port.
pub(super) enum Verdict {
    /// The request is forwarded, with or without `Authorization`.
    Open(AuthorizationHeader),
    /// The server answers it itself.
    Answer(Response<PreviewBody>),
    /// The request is refused.
    Closed(Problem),
    /// The request is refused because it lacks the sandbox's token.
    NeedsToken(Outcome),
}

pub(super) async fn check(
    app: &App,
    parts: &Parts,
    place: Place<'_>,
    sandbox: Option<&Sandbox>,
    is_public: Option<bool>,
) -> Verdict {
    let port = place.address.port;
    let authorization = authorization(app.auth(), &parts.headers);
    let shown = parts.headers.get(E2B_TOKEN_HEADER);
    let is_guarded = app.is_guarded_port(port);
    // The agent's port is never public.
    if (is_public == Some(true) && port != AGENT_PORT && !is_guarded)
        || sandbox.is_some_and(|sandbox| sandbox.public_ports.contains(&port) && !is_guarded)
        || sandbox.is_some_and(|sandbox| !is_guarded && is_traffic_token(app, sandbox, shown))
        || is_owner(app, &parts.headers, sandbox).await
    {
        return Verdict::Open(authorization);
    }
    if is_guarded
        && let Some(sandbox) = sandbox
        && let Some(authorization) = with_access_token(&parts.headers, sandbox, authorization)
    {
        return Verdict::Open(authorization);
    }
    let id: Option<SandboxId> = place.address.sandbox.parse().ok();
    let is_good = |token: &str| {
        id.as_ref()
            .is_some_and(|id| app.auth().check_preview(token, id, port).is_ok())
    };
    match open(parts, place, is_good) {
        Access::Granted(_) => Verdict::Open(authorization),
        Access::Redirect(redirect) => Verdict::Answer(redirect.into_response()),
        Access::Denied(_) if is_public == Some(false) => Verdict::NeedsToken(match shown {
            Some(_) => Outcome::TokenInvalid,
            None => Outcome::TokenMissing,
        }),
        Access::Denied(_) if open_listener::may_open(app, parts, place) => {
            Verdict::Open(authorization)
        }
        // A page of another site learns only that the preview is private.
        Access::Denied(Denial::Foreign) => Verdict::Closed(Problem::Refused),
        Access::Denied(denial) => Verdict::Closed(denial.into()),
    }
}

/// Admits a request with the sandbox's access token. `Authorization` is withheld if it holds that token, which the program in the
/// sandbox must not see.
fn with_access_token(
    headers: &HeaderMap,
    sandbox: &Sandbox,
    authorization: AuthorizationHeader,
) -> Option<AuthorizationHeader> {
    let is_token = |text: &str| {
        !sandbox.access_token.is_empty() && secrets_match(text.trim(), &sandbox.access_token)
    };
    if bearer(headers).is_some_and(is_token) {
        return Some(AuthorizationHeader::Withhold);
    }
    let shown = headers
        .get(ACCESS_TOKEN)
        .and_then(|token| token.to_str().ok());
    shown.is_some_and(is_token).then_some(authorization)
}

/// The token of `Authorization: Bearer`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn is_traffic_token(app: &App, sandbox: &Sandbox, shown: Option<&HeaderValue>) -> bool {
    shown
        .and_then(|token| token.to_str().ok())
        .is_some_and(|token| app.auth().is_traffic_token(&sandbox.id, token))
}

/// Says whether a request has credentials of the owner or an admin. Others may be for the program in the sandbox.
pub(super) async fn is_owner(app: &App, headers: &HeaderMap, sandbox: Option<&Sandbox>) -> bool {
    let key = headers.get("x-api-key").and_then(|key| key.to_str().ok());
    for credential in [key, bearer(headers)].into_iter().flatten() {
        if let Ok(caller) = app.auth().authenticate(credential).await
            && sandbox.map_or(caller.is_admin(), |sandbox| {
                caller.can_access(&sandbox.owner)
            })
            && caller.has(Scope::Use)
        {
            return true;
        }
    }
    false
}
