//! The data plane: requests for programs in a sandbox, first of all its agent.
//!
//! ```text
//! E2b-Sandbox-Id, E2b-Sandbox-Port ──┐              ┌─▶ 49983: the agent, its public routes only
//! {port}-{id}.{domain}   (preview) ──┼─▶ sandbox ───┤
//! a signature or token, nothing else ┘              └─▶ others: a port inside, by the module `preview`
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `agent_proxy` | requests to the agent: which routes are public, and which listener of the agent they use |
//! | `exchange` | responses in progress, which end when their sandbox stops running or the server shuts down |
//! | `relay` | confirms to the agent that output was delivered |
//! | `signature` | finds the sandbox of a signature or token |
//! | `token_index` | the tokens of all sandboxes, in memory |
//! | `proof_cache` | signatures and tokens that were found lately |
//! | `miss_limiter` | how often a client may show a signature or token that no sandbox has |
//! | `response` | responses of the data plane itself, with E2B's texts |
//! | `sandbox_id` | the id in the name that a client uses |
//! | `state` | what the data plane keeps between requests |

mod agent_proxy;
mod exchange;
mod miss_limiter;
mod proof_cache;
mod relay;
mod response;
mod sandbox_id;
mod signature;
mod state;
mod token_index;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{LOCATION, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{Extensions, Method};
use axum::middleware::Next;
use axum::response::Response;
use sandyard_agent_client::wire::routes::{AGENT_PORT, FILES};
use sandyard_preview::inert::{make_download, make_inert};
use sandyard_preview::{PreviewAddress, PreviewForm};

pub(crate) use agent_proxy::forward_to_agent;
pub(crate) use response::{Outcome, sandbox_response};
pub(crate) use sandbox_id::id_of;
pub(crate) use state::DataPlane;

use super::dispatch::{DataTarget, Plane};
use crate::app::App;

/// Says whether a request is for the data plane: its path belongs to a program in a sandbox.
pub(crate) fn is_data(extensions: &Extensions) -> bool {
    matches!(extensions.get(), Some(Plane::Data(_)))
}

/// The port that the headers of a request name, unless it is the agent's: previews serve all others.
pub(crate) fn preview_address(extensions: &Extensions) -> Option<PreviewAddress> {
    let Some(Plane::Data(DataTarget::Port { sandbox, port })) = extensions.get() else {
        return None;
    };
    let port = port_number(port).filter(|port| *port != AGENT_PORT)?;
    Some(PreviewAddress {
        sandbox: id_of(sandbox).to_owned(),
        port,
        form: PreviewForm::Host,
    })
}

/// Answers requests of the data plane that are not previews; passes all others on.
pub(crate) async fn intercept(State(app): State<App>, request: Request, next: Next) -> Response {
    let Some(Plane::Data(target)) = request.extensions().get::<Plane>().cloned() else {
        return next.run(request).await;
    };
    let (parts, body) = request.into_parts();
    let is_for_agent = is_for_agent(&target);
    let is_reading = matches!(parts.method, Method::GET | Method::HEAD);
    let is_file = is_for_agent && is_reading && parts.uri.path() == FILES;
    let mut response = respond(&app, parts, body, target).await;
    // The content of a sandbox is served on a host that other sandboxes share.
    let headers = response.headers_mut();
    make_inert(headers);
    if is_for_agent {
        // The agent neither redirects nor asks for a password.
        headers.remove(LOCATION);
        headers.remove(WWW_AUTHENTICATE);
    }
    if is_file {
        make_download(headers);
    }
    response
}

async fn respond(app: &App, parts: Parts, body: Body, target: DataTarget) -> Response {
    let plane = app.state::<DataPlane>();
    let found = match target {
        DataTarget::Malformed => return response::malformed(),
        DataTarget::Port { sandbox, port } => {
            return match port_number(&port) {
                Some(AGENT_PORT) => forward_to_agent(app, parts, body, &sandbox).await,
                // Previews have answered requests for other ports.
                _ => response::bad_port(&sandbox),
            };
        }
        // A browser sends a preflight without the headers that name the sandbox.
        _ if parts.method == Method::OPTIONS => return response::preflight(),
        DataTarget::Unnamed => return response::no_sandbox_named(),
        DataTarget::Signed => plane.signatures.find(app, &parts).await,
        DataTarget::Token => plane.signatures.find_by_token(app, &parts).await,
    };
    match found {
        Ok(sandbox) => forward_to_agent(app, parts, body, sandbox.as_str()).await,
        Err(refusal) => response::refused(refusal),
    }
}

/// Says whether a request is for an agent, not for another port.
fn is_for_agent(target: &DataTarget) -> bool {
    match target {
        DataTarget::Port { port, .. } => port_number(port) == Some(AGENT_PORT),
        DataTarget::Signed | DataTarget::Token => true,
        DataTarget::Unnamed | DataTarget::Malformed => false,
    }
}

/// Reads a port: decimal digits without leading zeros.
fn port_number(text: &str) -> Option<u16> {
    let is_plain = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_have_one_spelling() {
        assert_eq!(port_number("49983"), Some(49983));
        for text in ["", "0", "080", "+80", "65536", "80 ", "8x", "-1", "８０"] {
            assert_eq!(port_number(text), None, "{text}");
        }
    }
}
