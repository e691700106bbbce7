//! Requests to the agent of a sandbox.
//!
//! The agent has two doors. The host's is a socket: nearer, and whoever comes there is trusted with everything, so only who
//! shows the sandbox's token is led there, and only to what is public. All others are led to the door inside, the one that
//! programs in the sandbox use: there the agent looks at tokens and signatures itself and has nothing for the host only.
//!
//! An agent that is reached by somebody's proxy has one door for all, and a token of its own that nobody is told. Whoever shows
//! the sandbox's token, or a URL signed with it, is given that one on the way; all others come with what they have.

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::Response;
use hyper::upgrade::OnUpgrade;
use sandyard_agent_client::wire::routes::{self, AGENT_PORT, header::ACCESS_TOKEN};
use sandyard_agent_client::wire::signature::secrets_match;
use sandyard_agent_client::{AgentClient, BoxedStream};
use sandyard_preview::{
    DialError, Dialled, ForwardError, PreviewAddress, PreviewForm, Scheme, Target, forward,
};
use sandyard_service::{Sandbox, ServiceError};

use super::answer::{self, Told, about};
use super::awake::{Absent, awake, is_there};
use super::{find, id_of, relay, signed};
use crate::app::{App, Listener};
use crate::listen::Ending;
use crate::preview;

/// The two services whose calls are public.
const SERVICES: [&str; 2] = ["/process.Process/", "/filesystem.Filesystem/"];

/// Carries a request to the agent of a sandbox and gives its answer, both as they are.
pub(crate) async fn ask(app: &App, mut parts: Parts, body: Body, name: &str) -> Response {
    let sandbox = match find(app, name).await {
        Ok(Some(sandbox)) if is_there(sandbox.status) => sandbox,
        Ok(_) => return about(id_of(name), &Told::NotFound),
        Err(error) => return about(id_of(name), &told_of(&error)),
    };
    if !is_public(parts.uri.path()) {
        return answer::plain(StatusCode::NOT_FOUND, "no such route");
    }
    let has_token = shows_token(&parts, &sandbox);
    let is_signed = signed::is_signed(&parts, &sandbox.access_token);
    // A stranger shall not wake it.
    // Nor shall whoever only asks whether it runs.
    let may_wake = parts.uri.path() != routes::HEALTH && (has_token || is_signed);
    let id = sandbox.id.clone();
    let live = match awake(app, sandbox, may_wake).await {
        Ok(live) => live,
        Err(Absent::Gone | Absent::Resting) => return about(id.as_str(), &Told::NotFound),
        Err(Absent::Failed(error)) => return about(id.as_str(), &told_of(&error)),
    };
    // Nothing public speaks another protocol.
    parts.headers.remove(header::UPGRADE);
    parts.extensions.remove::<OnUpgrade>();
    let ending = parts.extensions.get::<Ending>().cloned();
    let exchange = app.data_plane().exchanges.begin(app, &id);
    let agent = live.agent.clone();
    let is_host_door = agent.endpoint().is_host_door();
    if is_signed
        && !has_token
        && !is_host_door
        && signed::is_over(&parts, app.service().clock().now_ms())
    {
        // Its agent knows nothing of our signatures.
        return answer::plain(StatusCode::UNAUTHORIZED, signed::IS_OVER);
    }
    let is_let_in = has_token || (is_signed && !is_host_door);
    relay::announce(&mut parts, has_token && is_host_door);
    let target = Target {
        guard: Some(Box::new(live)),
        ..target(app, &parts, id.as_str())
    };
    let request = Request::from_parts(parts, body);
    let dialled = agent.clone();
    let answered = exchange.unless_over(forward(request, target, |_| dial(dialled, is_let_in)));
    match answered.await {
        Some(Ok(mut response)) => {
            let relay = relay::wanted(response.headers_mut(), &agent).filter(|_| is_host_door);
            exchange.carry(response, ending, relay)
        }
        Some(Err(error)) => about(id.as_str(), &failed(app, id.as_str(), &error).await),
        None => about(id.as_str(), &Told::NotFound),
    }
}

/// Says whether a path leads to something that is not the host's alone. Compared as it is: the agent undoes no encoding of
/// paths either, so what differs by a byte is another path to both.
fn is_public(path: &str) -> bool {
    let is_call = |service: &str| {
        path.strip_prefix(service)
            .is_some_and(|call| !call.is_empty() && call.bytes().all(|b| b.is_ascii_alphabetic()))
    };
    matches!(
        path,
        routes::HEALTH | routes::METRICS | routes::ENVS | routes::FILES
    ) || SERVICES.into_iter().any(is_call)
}

/// Says whether a request shows the sandbox's token. A sandbox without one is nobody's to enter by the host's door.
fn shows_token(parts: &Parts, sandbox: &Sandbox) -> bool {
    let mut shown = parts.headers.get_all(ACCESS_TOKEN).iter();
    let (first, second) = (shown.next(), shown.next());
    !sandbox.access_token.is_empty()
        && second.is_none()
        && first
            .and_then(|token| token.to_str().ok())
            .is_some_and(|token| secrets_match(token, &sandbox.access_token))
}

fn target(app: &App, parts: &Parts, id: &str) -> Target {
    let address = PreviewAddress {
        sandbox: id.to_owned(),
        port: AGENT_PORT,
        form: PreviewForm::Host,
    };
    let listener = parts.extensions.get::<Listener>();
    let is_tls = listener.is_some_and(|listener| listener.is_tls);
    Target {
        client: listener.map(|listener| listener.peer.ip()),
        authorization: preview::authorization(app.auth(), &parts.headers),
        limits: preview::limits(),
        ..Target::new(
            &address,
            "localhost",
            if is_tls { Scheme::Https } else { Scheme::Http },
        )
    }
}

async fn dial(agent: AgentClient, is_let_in: bool) -> Result<Dialled<BoxedStream>, DialError> {
    if !is_let_in {
        let Dialled { stream, headers } = preview::dial(agent, AGENT_PORT).await?;
        return Ok(Dialled {
            stream: Box::new(stream),
            headers,
        });
    }
    let endpoint = agent.endpoint();
    let stream = endpoint.dial().await;
    Ok(Dialled {
        stream: stream.map_err(|error| DialError::Unreachable(error.into()))?,
        headers: endpoint.headers().cloned().unwrap_or_default(),
    })
}

/// What is told of a request that did not get through: the sandbox may have gone meanwhile.
async fn failed(app: &App, id: &str, error: &ForwardError) -> Told {
    tracing::debug!(sandbox.id = id, %error, "Request to an agent failed");
    match error {
        ForwardError::BadRequest(_) | ForwardError::ClientGone => {
            return Told::Other(StatusCode::BAD_REQUEST, error.to_string());
        }
        ForwardError::Timeout(_) => {
            return Told::Other(StatusCode::GATEWAY_TIMEOUT, error.to_string());
        }
        _ => {}
    }
    match find(app, id).await {
        Ok(Some(row)) => match awake(app, row, false).await {
            Err(Absent::Gone | Absent::Resting) => Told::NotFound,
            _ => Told::PortClosed(AGENT_PORT),
        },
        _ => Told::NotFound,
    }
}

/// What is told when the lifecycle fails.
fn told_of(error: &ServiceError) -> Told {
    Told::Other(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_public_is_let_through() {
        for path in [
            "/health",
            "/metrics",
            "/envs",
            "/files",
            "/process.Process/Start",
            "/filesystem.Filesystem/ListDir",
        ] {
            assert!(is_public(path), "{path}");
        }
        for path in [
            "/",
            "",
            "*",
            "/init",
            "/dial",
            "/egress",
            "/activity",
            "//init",
            "/INIT",
            "/health/",
            "/health/../init",
            "/./health",
            "/files/../init",
            "/%69nit",
            "/files%2f..%2finit",
            "/process.Process/",
            "/process.Process/../init",
            "/process.Process/..%2f..%2finit",
            "/process.Process/Start/",
            "/process.Process/Start;x",
            "/process.Processor/Start",
            "/x/process.Process/Start",
        ] {
            assert!(!is_public(path), "{path}");
        }
    }
}
