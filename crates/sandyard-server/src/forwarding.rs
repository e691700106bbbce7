//! How requests reach a port inside a sandbox: dialling it, limits, and whether `Authorization` goes along.

use std::time::Duration;

use axum::http::{HeaderMap, header};
use sandyard_agent_client::wire::Code;
use sandyard_agent_client::{AgentClient, BoxedStream, ClientError};
use sandyard_auth::Auth;
use sandyard_preview::{AuthorizationHeader, DialError, Dialled, ForwardLimits, Scheme};

use crate::app::App;
use crate::listen::Listener;

/// Longest wait for a connection to a port. The agent waits for ports that are still being started, and tools may have to be
/// installed first; both have shorter time limits of their own.
const CONNECT: Duration = Duration::from_secs(150);

/// Sizes and times of a request to a port.
pub(crate) fn limits() -> ForwardLimits {
    ForwardLimits {
        connect: CONNECT,
        ..ForwardLimits::default()
    }
}

/// The scheme of the URL that the visitor used. A proxy in front of the server may terminate TLS.
pub(crate) fn scheme(app: &App, listener: Option<Listener>) -> Scheme {
    let is_public_tls = app
        .settings()
        .public_url
        .as_deref()
        .is_some_and(|url| url.starts_with("https://"));
    if is_public_tls || listener.is_some_and(|listener| listener.is_tls) {
        Scheme::Https
    } else {
        Scheme::Http
    }
}

/// Connects to a port inside a sandbox.
pub(crate) async fn dial(agent: AgentClient, port: u16) -> Result<Dialled<BoxedStream>, DialError> {
    let dialled = agent.dial(port).await.map_err(|error| match error {
        ClientError::Remote {
            code: Code::Unavailable,
            ..
        } => DialError::PortClosed,
        ClientError::Timeout { .. } => DialError::Timeout,
        other => DialError::Unreachable(other.into()),
    })?;
    Ok(Dialled {
        headers: dialled.headers,
        stream: dialled.stream,
    })
}

/// Decides whether `Authorization` is forwarded. A credential of this server is withheld however the port was opened and
/// whether or not it is valid: a program in the sandbox could use it against its owner.
pub(crate) fn authorization(auth: &Auth, headers: &HeaderMap) -> AuthorizationHeader {
    let is_ours = headers.get_all(header::AUTHORIZATION).iter().any(|value| {
        let text = String::from_utf8_lossy(value.as_bytes());
        let is_node_scheme = |word: &str| word.eq_ignore_ascii_case("node");
        text.split(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c))
            .enumerate()
            .any(|(position, word)| auth.is_own(word) || (position == 0 && is_node_scheme(word)))
    });
    if is_ours {
        AuthorizationHeader::Withhold
    } else {
        AuthorizationHeader::Forward
    }
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
