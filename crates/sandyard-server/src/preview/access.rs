//! Who may open a port: everybody if its owner says so, else the owner, whoever has a link, and this host's own people.

use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use sandyard_core::Scope;
use sandyard_preview::access::open;
use sandyard_preview::{Access, AuthorizationHeader, Denial, Place, PreviewBody, Problem};
use sandyard_service::Sandbox;

use super::local;
use crate::app::App;

/// What becomes of a request.
pub(super) enum Verdict {
    /// It may pass; whether `Authorization` was for us or is for the sandbox.
    Open(AuthorizationHeader),
    /// It is answered here.
    Answer(Response<PreviewBody>),
    /// It may not.
    Closed(Problem),
}

pub(super) async fn check(
    app: &App,
    parts: &Parts,
    place: Place<'_>,
    sandbox: &Sandbox,
) -> Verdict {
    let port = place.address.port;
    if sandbox.public_ports.contains(&port) {
        return Verdict::Open(AuthorizationHeader::Forward);
    }
    if let Some(authorization) = owner(app, &parts.headers, sandbox).await {
        return Verdict::Open(authorization);
    }
    let is_good = |token: &str| app.auth().check_preview(token, &sandbox.id, port).is_ok();
    match open(parts, place, is_good) {
        Access::Granted(_) => Verdict::Open(AuthorizationHeader::Forward),
        Access::Redirect(redirect) => Verdict::Answer(redirect.into_response()),
        Access::Denied(_) if local::may_open(app, parts, place) => {
            Verdict::Open(AuthorizationHeader::Forward)
        }
        // A page of another site is told no more than that the preview is private.
        Access::Denied(Denial::Foreign) => Verdict::Closed(Problem::Refused),
        Access::Denied(denial) => Verdict::Closed(denial.into()),
    }
}

/// Lets the owner's own credentials in. Those that are not good may be meant for what runs in the sandbox.
async fn owner(app: &App, headers: &HeaderMap, sandbox: &Sandbox) -> Option<AuthorizationHeader> {
    let text = |name| headers.get(name)?.to_str().ok();
    let bearer = text(header::AUTHORIZATION)
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, token)| token.trim());
    let key = text(header::HeaderName::from_static("x-api-key"));
    for (credential, authorization) in [
        (key, AuthorizationHeader::Forward),
        (bearer, AuthorizationHeader::Withhold),
    ] {
        let Some(credential) = credential else {
            continue;
        };
        if let Ok(caller) = app.auth().authenticate(credential).await
            && caller.owns(&sandbox.owner)
            && caller.has(Scope::Use)
        {
            return Some(authorization);
        }
    }
    None
}
