//! Ports of sandboxes, over `sandyard-preview`: who may, which sandbox, and the way there.
//!
//! Stands before all routes: a request for the host of a preview, or for `/p/{sandbox}/{port}/`, never gets to the API.
//!
//! | file | holds |
//! |---|---|
//! | `access` | who may open a port |
//! | `local` | what may be asked without credentials on an open listener |
//! | here | the way to the port, and what is said when there is none |

mod access;
mod local;

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use sandyard_agent_client::wire::Code;
use sandyard_agent_client::{AgentClient, ClientError, DialStream};
use sandyard_core::{ErrorKind, SandboxStatus};
use sandyard_preview::address::{host_of, slash_redirect};
use sandyard_preview::{
    DialError, Domains, ForwardError, Page, Place, PreviewAddress, PreviewBody, Problem, Scheme,
    Target, forward,
};
use sandyard_service::{Sandbox, ServiceError};

use crate::app::{App, Listener};
use access::Verdict;

/// For how long after its start a sandbox may still be starting what shall listen.
const STARTING_MS: i64 = 60_000;
/// How soon a page then looks again.
const RELOAD: Duration = Duration::from_secs(2);

/// Answers requests for previews; lets all others pass.
pub(crate) async fn intercept(State(app): State<App>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let domains = Domains::new([app.settings().domain.as_str(), "localhost"]);
    let Some(address) = domains.address_of(&parts) else {
        return next.run(Request::from_parts(parts, body)).await;
    };
    if matches!(parts.method, Method::GET | Method::HEAD)
        && let Some(location) = slash_redirect(&parts.uri)
        && let Ok(location) = HeaderValue::try_from(location)
    {
        return redirect(location);
    }
    show(&app, parts, body, &address, &domains)
        .await
        .map(Body::new)
}

fn redirect(location: HeaderValue) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    response.headers_mut().insert(header::LOCATION, location);
    response
}

async fn show(
    app: &App,
    parts: Parts,
    body: Body,
    address: &PreviewAddress,
    domains: &Domains,
) -> Response<PreviewBody> {
    let headers = parts.headers.clone();
    let page = |problem| Page::new(problem, &address.sandbox, address.port).into_response(&headers);
    let Some(host) = host_of(&parts).map(str::to_owned) else {
        return page(Problem::BadRequest);
    };
    let sandbox = match app.service().find_for_preview(&address.sandbox).await {
        Ok(sandbox) => sandbox,
        Err(error) => return page(problem_of(&error)),
    };
    let listener = parts.extensions.get::<Listener>().copied();
    let scheme = scheme(app, listener);
    let place = Place {
        address,
        host: &host,
        scheme,
        domains,
    };
    let authorization = match access::check(app, &parts, place, sandbox.as_ref()).await {
        Verdict::Open(authorization) => authorization,
        Verdict::Answer(response) => return response,
        Verdict::Closed(problem) => return page(problem),
    };
    // Only now: whether there is such a sandbox is for those to know who may open it.
    let Some(sandbox) = sandbox.filter(is_there) else {
        return page(Problem::Gone);
    };
    let live = match app.service().live_for_preview(&sandbox).await {
        Ok(live) => live,
        Err(error) => return page(problem_of(&error)),
    };
    let agent = live.agent.clone();
    let target = Target {
        client: listener.map(|listener| listener.peer.ip()),
        authorization,
        // In use for as long as the answer, or the connection it was upgraded to, goes on.
        guard: Some(Box::new(live)),
        ..Target::new(address, host.clone(), scheme)
    };
    let request = Request::from_parts(parts, body);
    match forward(request, target, |port| dial(agent, port)).await {
        Ok(response) => response,
        Err(error) => failed(app, &sandbox, address, &error, &headers),
    }
}

fn is_there(sandbox: &Sandbox) -> bool {
    !matches!(
        sandbox.status,
        SandboxStatus::Deleting | SandboxStatus::Deleted
    )
}

/// How the visitor reached us; a proxy in front may speak TLS for us.
fn scheme(app: &App, listener: Option<Listener>) -> Scheme {
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

async fn dial(agent: AgentClient, port: u16) -> Result<DialStream, DialError> {
    agent.dial(port).await.map_err(|error| match error {
        ClientError::Remote {
            code: Code::Unavailable,
            ..
        } => DialError::PortClosed,
        ClientError::Timeout { .. } => DialError::Timeout,
        other => DialError::Unreachable(other.into()),
    })
}

/// The page for a request that did not get through.
fn failed(
    app: &App,
    sandbox: &Sandbox,
    address: &PreviewAddress,
    error: &ForwardError,
    headers: &HeaderMap,
) -> Response<PreviewBody> {
    tracing::debug!(sandbox.id = %sandbox.id, port = address.port, %error, "Preview failed");
    let age_ms = sandbox
        .started_ms
        .map(|started_ms| app.service().clock().now_ms() - started_ms);
    Page {
        reload: age_ms
            .filter(|age_ms| *age_ms < STARTING_MS)
            .map(|_| RELOAD),
        ..Page::new(error.into(), &address.sandbox, address.port)
    }
    .into_response(headers)
}

/// What a visitor is told when there is no sandbox to talk to.
fn problem_of(error: &ServiceError) -> Problem {
    match error.kind {
        ErrorKind::SandboxNotFound | ErrorKind::NotFound => Problem::Gone,
        ErrorKind::Unavailable | ErrorKind::TimedOut => Problem::Unreachable,
        _ => Problem::CannotWake,
    }
}
