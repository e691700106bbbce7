//! The data plane: requests for what runs in a sandbox, its agent first of all.
//!
//! ```text
//! E2b-Sandbox-Id, E2b-Sandbox-Port ──┐              ┌─▶ 49983: the agent, by its public routes only
//! {port}-{id}.{domain}   (preview) ──┼─▶ sandbox ───┤
//! a signature or token, nothing else ┘              └─▶ others: a port inside, as a preview
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `agent` | requests to the agent: which may pass, and through which of its doors |
//! | `awake` | a sandbox that runs, woken only if it may be |
//! | `exchange` | answers under way, and their end when their sandbox is gone or the server ends |
//! | `relay` | a word to the agent that output got where it was meant for |
//! | `signed` | which sandbox a signature is of |
//! | `tokens` | the tokens of all sandboxes, in memory |
//! | `hits` | which sandboxes were found lately, and by what |
//! | `misses` | how often a stranger may be wrong |
//! | `answer` | what is said when nothing of a sandbox can be, word for word as E2B says it |

mod agent;
mod answer;
mod awake;
mod exchange;
mod hits;
mod misses;
mod relay;
mod signed;
mod tokens;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{LOCATION, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{Extensions, Method};
use axum::middleware::Next;
use axum::response::Response;
use sandyard_agent_client::wire::routes::{AGENT_PORT, FILES};
use sandyard_core::ErrorKind;
use sandyard_preview::inert::{make_download, make_inert};
use sandyard_preview::{PreviewAddress, PreviewForm};
use sandyard_service::{Sandbox, ServiceError, ServiceResult};

pub(crate) use agent::ask;
pub(crate) use answer::{Told, about};
pub(crate) use awake::{Absent, awake, is_there};
pub(crate) use exchange::Exchanges;
pub(crate) use signed::Signatures;

use super::door::{Plane, Wanted};
use crate::app::App;
use crate::preview;

/// What the data plane remembers between requests.
#[derive(Debug, Default)]
pub(crate) struct DataPlane {
    /// Answers under way.
    pub(crate) exchanges: Exchanges,
    /// Which sandbox a signature is of.
    pub(crate) signatures: Signatures,
}

/// Says whether a request is the data plane's: its path is then what runs in a sandbox has there.
pub(crate) fn is_data(extensions: &Extensions) -> bool {
    matches!(extensions.get(), Some(Plane::Data(_)))
}

/// Answers requests of the data plane; lets all others pass.
pub(crate) async fn intercept(State(app): State<App>, request: Request, next: Next) -> Response {
    let Some(Plane::Data(wanted)) = request.extensions().get::<Plane>().cloned() else {
        return next.run(request).await;
    };
    let (parts, body) = request.into_parts();
    let is_for_agent = is_for_agent(&wanted);
    let is_reading = matches!(parts.method, Method::GET | Method::HEAD);
    let is_file = is_for_agent && is_reading && parts.uri.path() == FILES;
    let mut response = answer(&app, parts, body, wanted).await;
    // What a sandbox says is said on a host that is not its own.
    let headers = response.headers_mut();
    make_inert(headers);
    if is_for_agent {
        // It never sends anybody elsewhere, and asks for nobody's password.
        headers.remove(LOCATION);
        headers.remove(WWW_AUTHENTICATE);
    }
    if is_file {
        make_download(headers);
    }
    response
}

async fn answer(app: &App, parts: Parts, body: Body, wanted: Wanted) -> Response {
    match wanted {
        Wanted::Unreadable => answer::unreadable(),
        Wanted::Port { sandbox, port } => match port_number(&port) {
            Some(port) => to_port(app, parts, body, &sandbox, port).await,
            None => answer::bad_port(&sandbox),
        },
        // A browser asks before it sends what would name the sandbox.
        _ if parts.method == Method::OPTIONS => answer::preflight(),
        Wanted::Signed => match app.data_plane().signatures.find(app, &parts).await {
            Ok(sandbox) => ask(app, parts, body, sandbox.as_str()).await,
            Err(refusal) => answer::refused(refusal),
        },
        Wanted::Token => match app.data_plane().signatures.find_by_token(app, &parts).await {
            Ok(sandbox) => ask(app, parts, body, sandbox.as_str()).await,
            Err(refusal) => answer::refused(refusal),
        },
        Wanted::Nobody => answer::nobody(),
    }
}

/// Says whether a request is for an agent, not for another port.
fn is_for_agent(wanted: &Wanted) -> bool {
    match wanted {
        Wanted::Port { port, .. } => port_number(port) == Some(AGENT_PORT),
        Wanted::Signed | Wanted::Token => true,
        Wanted::Nobody | Wanted::Unreadable => false,
    }
}

/// Finds a sandbox by what clients call it: its id, which old ones put before a dash and something else. One whose owner is
/// disabled is nobody's.
pub(crate) async fn find(app: &App, name: &str) -> ServiceResult<Option<Sandbox>> {
    let Some(sandbox) = app.service().find_for_preview(id_of(name)).await? else {
        return Ok(None);
    };
    let is_shut = is_shut(app, &sandbox).await?;
    Ok((!is_shut).then_some(sandbox))
}

/// Says whether the owner of a sandbox is disabled: no token opens it then, and no port of it is public.
pub(crate) async fn is_shut(app: &App, sandbox: &Sandbox) -> ServiceResult<bool> {
    let is_disabled = app.auth().is_disabled(&sandbox.owner).await;
    is_disabled.map_err(|error| {
        tracing::warn!(%error, "The owner of a sandbox cannot be looked up");
        ServiceError::new(
            ErrorKind::Unavailable,
            "the owner of the sandbox cannot be looked up: try again in a moment",
        )
    })
}

/// The id in a name.
pub(crate) fn id_of(name: &str) -> &str {
    name.split_once('-').map_or(name, |(id, _)| id)
}

async fn to_port(app: &App, parts: Parts, body: Body, sandbox: &str, port: u16) -> Response {
    if port == AGENT_PORT {
        return ask(app, parts, body, sandbox).await;
    }
    let address = PreviewAddress {
        sandbox: id_of(sandbox).to_owned(),
        port,
        form: PreviewForm::Host,
    };
    preview::visit(app, parts, body, &address).await
}

/// Reads a port in its one spelling.
fn port_number(text: &str) -> Option<u16> {
    let is_plain = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_old_clients_have_a_tail() {
        assert_eq!(id_of("abc"), "abc");
        assert_eq!(id_of("abc-6532622b"), "abc");
        assert_eq!(id_of("abc-1-2"), "abc");
        assert_eq!(id_of("-abc"), "");
    }

    #[test]
    fn ports_have_one_spelling() {
        assert_eq!(port_number("49983"), Some(49983));
        for text in ["", "0", "080", "+80", "65536", "80 ", "8x", "-1", "８０"] {
            assert_eq!(port_number(text), None, "{text}");
        }
    }
}
