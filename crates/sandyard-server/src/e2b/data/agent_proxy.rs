//! Forwards requests to the agent of a sandbox.
//!
//! The agent has two listeners. The host's socket is faster, and the agent trusts its clients with everything. So only requests
//! that show the sandbox's token are forwarded there, and only to public routes. All other requests are forwarded to the
//! listener inside the sandbox, which programs of the sandbox use too: there the agent itself checks tokens and signatures, and
//! has no route for the host alone.
//!
//! An agent behind the proxy of a cloud has one listener for all, and a token of its own that clients never learn. A request
//! that shows the sandbox's token, or a URL signed with it, gets that token on the way; others are forwarded as they are.

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
use sandyard_service::{NotRunning, Sandbox, ServiceError, WakePolicy};
use sandyard_store::model::NewAuditEntry;

use super::response::{self, Outcome, sandbox_response};
use super::sandbox_id::id_of;
use super::state::DataPlane;
use super::{relay, signature};
use crate::app::App;
use crate::audit::{self, HUNG_UP, Note};
use crate::forwarding;
use crate::listen::{Listener, Shutdown};
use crate::middleware::request_id::RequestId;
use crate::visibility::find_visible;

/// Services of the agent whose calls are public.
const SERVICES: [&str; 2] = ["/process.Process/", "/filesystem.Filesystem/"];

/// Forwards a request to the agent of a sandbox, and the agent's response back.
pub(crate) async fn forward_to_agent(
    app: &App,
    mut parts: Parts,
    body: Body,
    name: &str,
) -> Response {
    let id = id_of(name);
    let sandbox = match find_visible(app, id).await {
        Ok(Some(sandbox)) if sandbox.status.is_present() => sandbox,
        Ok(_) => return sandbox_response(id, &Outcome::NotFound),
        Err(error) => return sandbox_response(id, &unavailable(&error)),
    };
    crate::noted_sandbox::note_sandbox(sandbox.id.as_str());
    if !is_public(parts.uri.path()) {
        return response::plain(StatusCode::NOT_FOUND, "no such route");
    }
    let has_token = shows_token(&parts, &sandbox);
    let is_signed = signature::is_signed(&parts, &sandbox.access_token);
    // Neither a client without a credential nor a health check wakes a sandbox.
    let wake_policy = match parts.uri.path() != routes::HEALTH && (has_token || is_signed) {
        true => WakePolicy::Wake,
        false => WakePolicy::Never,
    };
    let id = sandbox.id.clone();
    let mut note = match has_token || is_signed {
        true => begin_note(app, &parts, &sandbox, has_token),
        false => None,
    };
    let live = match app.service().live_for(sandbox, wake_policy).await {
        Ok(live) => live,
        Err(NotRunning::Deleted | NotRunning::Asleep) => {
            return sandbox_response(id.as_str(), &Outcome::NotFound);
        }
        Err(NotRunning::Failed(error)) => {
            return sandbox_response(id.as_str(), &unavailable(&error));
        }
    };
    // No public route upgrades its connection.
    parts.headers.remove(header::UPGRADE);
    parts.extensions.remove::<OnUpgrade>();
    let shutdown = parts.extensions.get::<Shutdown>().cloned();
    let exchange = app.state::<DataPlane>().exchanges.begin(app, &id);
    let agent = live.agent.clone();
    let is_host_socket = agent.endpoint().is_host_connection();
    if is_signed
        && !has_token
        && !is_host_socket
        && signature::is_expired(&parts, app.service().clock().now_ms())
    {
        // A cloud's agent does not know this server's signatures, so it cannot check them.
        return response::plain(StatusCode::UNAUTHORIZED, signature::EXPIRED);
    }
    let is_trusted = has_token || (is_signed && !is_host_socket);
    relay::announce(&mut parts, has_token && is_host_socket);
    let target = Target {
        guard: Some(Box::new(live)),
        ..target(app, &parts, id.as_str())
    };
    let request = Request::from_parts(parts, body);
    let dialled = agent.clone();
    let forwarded = exchange.until_ended(forward(request, target, |_| dial(dialled, is_trusted)));
    match forwarded.await {
        Some(Ok(mut response)) => {
            if let Some(note) = &mut note {
                note.finish(response.status().as_u16(), Some(id.to_string()));
            }
            let relay = relay::requested(response.headers_mut(), &agent).filter(|_| is_host_socket);
            exchange.carry(response, shutdown, relay)
        }
        Some(Err(error)) => sandbox_response(id.as_str(), &failed(app, id.as_str(), &error).await),
        None => sandbox_response(id.as_str(), &Outcome::NotFound),
    }
}

/// Begins the audit entry of a request that changes something. A credential of a sandbox acts for its owner.
fn begin_note(app: &App, parts: &Parts, sandbox: &Sandbox, has_token: bool) -> Option<Note> {
    let verb = audit::agent_verb(&parts.method, parts.uri.path())?;
    let via = match has_token {
        true => "sandbox token",
        false => "signed URL",
    };
    let request = parts.extensions.get::<RequestId>();
    let listener = parts.extensions.get::<Listener>();
    let entry = NewAuditEntry {
        at_ms: app.service().clock().now_ms(),
        actor: sandbox.owner.clone(),
        via: via.to_owned(),
        action: verb.to_owned(),
        target: Some(sandbox.id.to_string()),
        status: HUNG_UP.into(),
        request_id: request.map_or_else(String::new, |id| id.0.clone()),
        address: listener.map(|listener| listener.peer.ip().to_string()),
    };
    Some(Note::begin(app.audit(), entry))
}

/// Says whether a path is a public route of the agent. Paths are compared without decoding them, as the agent does: a path
/// that differs by a byte is another path to both.
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

/// Says whether a request shows the sandbox's token. A sandbox without a token has none that could be shown.
fn shows_token(parts: &Parts, sandbox: &Sandbox) -> bool {
    let mut tokens = parts.headers.get_all(ACCESS_TOKEN).iter();
    let (first, second) = (tokens.next(), tokens.next());
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
        authorization: forwarding::authorization(app.auth(), &parts.headers),
        limits: forwarding::limits(),
        ..Target::new(
            &address,
            "localhost",
            if is_tls { Scheme::Https } else { Scheme::Http },
        )
    }
}

async fn dial(agent: AgentClient, is_trusted: bool) -> Result<Dialled<BoxedStream>, DialError> {
    if !is_trusted {
        return forwarding::dial(agent, AGENT_PORT).await;
    }
    let endpoint = agent.endpoint();
    let stream = endpoint.dial().await;
    Ok(Dialled {
        stream: stream.map_err(|error| DialError::Unreachable(error.into()))?,
        headers: endpoint.headers().cloned().unwrap_or_default(),
    })
}

/// Explains why a request could not be forwarded: the sandbox may have been paused or deleted meanwhile.
async fn failed(app: &App, id: &str, error: &ForwardError) -> Outcome {
    tracing::debug!(sandbox.id = id, %error, "Request to an agent failed");
    match error {
        ForwardError::BadRequest(_) | ForwardError::ClientGone => {
            return Outcome::Other(StatusCode::BAD_REQUEST, error.to_string());
        }
        ForwardError::Timeout(_) => {
            return Outcome::Other(StatusCode::GATEWAY_TIMEOUT, error.to_string());
        }
        _ => {}
    }
    match find_visible(app, id).await {
        Ok(Some(row)) => match app.service().live_for(row, WakePolicy::Never).await {
            Err(NotRunning::Deleted | NotRunning::Asleep) => Outcome::NotFound,
            _ => Outcome::PortClosed(AGENT_PORT),
        },
        _ => Outcome::NotFound,
    }
}

/// The outcome of a failure of the service.
fn unavailable(error: &ServiceError) -> Outcome {
    Outcome::Other(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_routes_are_forwarded() {
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
