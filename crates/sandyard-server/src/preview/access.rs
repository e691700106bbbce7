//! Who may open a port: everybody if its owner says so, else the owner, whoever has a link, and this host's own people.
//!
//! E2B's clients say it of all ports of a sandbox at once: all are everybody's, or all are for who shows the sandbox's token.
//!
//! The ports of the tool server and of VS Code are never everybody's, nor does the token for all ports open them: whoever opens one
//! can do all that the sandbox can. The sandbox's own access token opens them too, since MCP clients have nothing but headers.
//!
//! A sandbox that does not exist is as private as one of somebody else's: who may open neither cannot tell them apart.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use sandyard_agent_client::wire::routes::{AGENT_PORT, header::ACCESS_TOKEN};
use sandyard_agent_client::wire::signature::secrets_match;
use sandyard_auth::Auth;
use sandyard_core::{SandboxId, Scope};
use sandyard_preview::access::open;
use sandyard_preview::names::E2B_TOKEN_HEADER;
use sandyard_preview::{Access, AuthorizationHeader, Denial, Place, PreviewBody, Problem};
use sandyard_service::Sandbox;

use super::local;
use crate::app::App;
use crate::e2b::data::Told;

/// What becomes of a request.
pub(super) enum Verdict {
    /// It may pass; whether `Authorization` was for us or is for the sandbox.
    Open(AuthorizationHeader),
    /// It is answered here.
    Answer(Response<PreviewBody>),
    /// It may not.
    Closed(Problem),
    /// It may not without the sandbox's token; what there is to tell of that.
    NeedsToken(Told),
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
    // The agent's port is never everybody's.
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
            Some(_) => Told::TokenInvalid,
            None => Told::TokenMissing,
        }),
        Access::Denied(_) if local::may_open(app, parts, place) => Verdict::Open(authorization),
        // A page of another site is told no more than that the preview is private.
        Access::Denied(Denial::Foreign) => Verdict::Closed(Problem::Refused),
        Access::Denied(denial) => Verdict::Closed(denial.into()),
    }
}

/// Lets in who shows the sandbox's access token, and says what becomes of `Authorization`: what listens is not to see the token.
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

/// Says for whom `Authorization` is. A credential of ours stays here however the port was opened and whether or not it
/// is good: what runs in the sandbox could use it against its owner.
pub(crate) fn authorization(auth: &Auth, headers: &HeaderMap) -> AuthorizationHeader {
    let is_ours = headers.get_all(header::AUTHORIZATION).iter().any(|value| {
        let text = String::from_utf8_lossy(value.as_bytes());
        let is_node = |word: &str| word.eq_ignore_ascii_case("node");
        text.split(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c))
            .enumerate()
            .any(|(place, word)| auth.is_own(word) || (place == 0 && is_node(word)))
    });
    if is_ours {
        AuthorizationHeader::Withhold
    } else {
        AuthorizationHeader::Forward
    }
}

/// Lets the owner's own credentials in. Those that are not good may be meant for what runs in the sandbox.
pub(super) async fn is_owner(app: &App, headers: &HeaderMap, sandbox: Option<&Sandbox>) -> bool {
    let key = headers.get("x-api-key").and_then(|key| key.to_str().ok());
    for credential in [key, bearer(headers)].into_iter().flatten() {
        if let Ok(caller) = app.auth().authenticate(credential).await
            && sandbox.map_or(caller.is_admin(), |sandbox| caller.owns(&sandbox.owner))
            && caller.has(Scope::Use)
        {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use sandyard_auth::AuthConfig;
    use sandyard_core::{Clock, Role};
    use sandyard_store::Store;

    use super::*;

    #[tokio::test]
    async fn credentials_of_ours_are_withheld_and_those_of_others_are_not() {
        let store = Store::open("sqlite::memory:").await.unwrap();
        let clock = Clock::manual(1_000_000);
        let config = AuthConfig {
            password_memory_kib: 64,
            ..AuthConfig::default()
        };
        let auth = Auth::open(store, clock, config).await.unwrap();
        auth.create_user("alice", Some("TestPass123!"), Role::User, None)
            .await
            .unwrap();
        let session = auth.login("alice", "TestPass123!").await.unwrap();
        let key = format!("e2b_{}", "a".repeat(40));
        let foreign = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.AAAA";
        let of = |values: &[String]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, value.parse().unwrap());
            }
            authorization(&auth, &headers)
        };
        for value in [
            format!("Bearer {key}"),
            format!("bearer   {key} "),
            key.clone(),
            format!("Bearer {}", session.access_token),
            "Node 1.x".to_owned(),
        ] {
            assert_eq!(
                of(std::slice::from_ref(&value)),
                AuthorizationHeader::Withhold
            );
            assert_eq!(
                of(&["Basic YTpi".to_owned(), value]),
                AuthorizationHeader::Withhold
            );
        }
        for value in ["Basic YTpi", "Bearer sk-app", &format!("Bearer {foreign}")] {
            assert_eq!(of(&[value.to_owned()]), AuthorizationHeader::Forward);
        }
        assert_eq!(of(&[]), AuthorizationHeader::Forward);
    }
}
