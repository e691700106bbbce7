//! Ports of sandboxes, over `sandyard-preview`: who may open them, and how requests get there.
//!
//! It runs before all routes: a request for the host of a preview, or for `/p/{sandbox}/{port}/`, never reaches the API. It serves
//! both the native dialect's previews and the ports that E2B's clients name by headers.
//!
//! | file | holds |
//! |---|---|
//! | `access` | who may open a port |
//! | `own_host` | leads browsers from `/p/` to the host of a port |
//! | `open_listener` | what an open listener allows without credentials |
//! | `error_presenter` | failures as pages, as JSON, and as E2B's clients expect them |
//! | `tool_server_port` | tells the tool server the URLs of ports when an MCP session begins |
//! | here | one request |

mod access;
mod error_presenter;
mod open_listener;
mod own_host;
mod tool_server_port;

use axum::body::Body;
use axum::extract::{FromRequestParts as _, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use sandyard_agent_client::wire::routes::{AGENT_PORT, header::ACCESS_TOKEN};
use sandyard_agent_client::wire::signature::secrets_match;
use sandyard_core::network::NetworkPolicy;
use sandyard_preview::address::{host_of, slash_redirect};
use sandyard_preview::inert::make_inert;
use sandyard_preview::{
    Domains, HostHeader, PreviewAddress, PreviewForm, Problem, RequestContext, Target, forward,
};
use sandyard_service::{Live, Sandbox, ServiceResult, WakePolicy};

use crate::app::App;
use crate::e2b::data::{self, DataPlane};
use crate::forwarding::{self, dial};
use crate::links::Links;
use crate::listen::{Listener, Shutdown};
use crate::noted_sandbox::note_sandbox;
use crate::visibility::is_owner_disabled;
use access::Verdict;
use error_presenter::ErrorPresenter;

/// Stands for the port in a masked host.
const PORT_VARIABLE: &str = "${PORT}";

/// Answers requests for previews; passes all others on.
pub(crate) async fn intercept(State(app): State<App>, request: Request, next: Next) -> Response {
    if let Some(address) = data::preview_address(request.extensions()) {
        let (parts, body) = request.into_parts();
        let mut response = serve_port(&app, parts, body, &address).await;
        // The content of a sandbox is served on a host that other sandboxes share.
        make_inert(response.headers_mut());
        return response;
    }
    if data::is_data(request.extensions()) {
        // It goes to an agent. Its path may look like that of a preview.
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let Some(mut address) = domains(&app).address_of(&parts) else {
        return next.run(Request::from_parts(parts, body)).await;
    };
    if matches!(parts.method, Method::GET | Method::HEAD)
        && let Some(location) = slash_redirect(&parts.uri)
        && let Ok(location) = HeaderValue::try_from(location)
    {
        return redirect(location);
    }
    if address.form == PreviewForm::Host {
        if address.port == AGENT_PORT {
            return data::forward_to_agent(&app, parts, body, &address.sandbox).await;
        }
        address.sandbox = data::id_of(&address.sandbox).to_owned();
    }
    serve_port(&app, parts, body, &address).await
}

fn domains(app: &App) -> Domains {
    Domains::new([app.settings().domain.as_str(), "localhost"])
}

fn redirect(location: HeaderValue) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    response.headers_mut().insert(header::LOCATION, location);
    response
}

/// Serves a port of a sandbox.
async fn serve_port(app: &App, mut parts: Parts, body: Body, address: &PreviewAddress) -> Response {
    let mut errors = ErrorPresenter::new(app, &parts, address);
    let Some(host) = host_of(&parts).map(str::to_owned) else {
        return errors.problem(Problem::BadRequest);
    };
    if let Some(response) = own_host::redirect(app, &parts, address, &host, &errors) {
        return response;
    }
    let sandbox = find(app, &parts, address).await;
    let (sandbox, policy) = match sandbox.and_then(|sandbox| with_policy(app, sandbox)) {
        Ok(found) => found,
        Err(error) => return errors.service_failure(&error),
    };
    errors.add_sandbox(app, sandbox.as_ref(), policy.allow_public_traffic);
    if errors.is_e2b() && !sandbox.as_ref().is_some_and(|it| it.status.is_present()) {
        return errors.problem(Problem::NotFound);
    }
    let listener = parts.extensions.get::<Listener>().copied();
    let context = RequestContext {
        address,
        host: &host,
        scheme: forwarding::scheme(app, listener),
        domains: &domains(app),
    };
    let is_public = policy.allow_public_traffic;
    let authorization = match access::check(app, &parts, context, sandbox.as_ref(), is_public).await
    {
        Verdict::Open(authorization) => authorization,
        Verdict::Answer(response) => return response.map(Body::new),
        Verdict::Closed(problem) => return errors.problem(problem),
        Verdict::NeedsToken(outcome) => return errors.token_failure(&outcome),
    };
    // Only after the check of the access: who may not open the sandbox must not learn whether it exists.
    let Some(sandbox) = sandbox.filter(|it| it.status.is_present()) else {
        return errors.problem(Problem::NotFound);
    };
    withhold_token(&mut parts, &sandbox);
    let live = match app.service().live_for(sandbox, WakePolicy::Wake).await {
        Ok(live) => live,
        Err(reason) => return errors.not_running(&reason),
    };
    let public_host = public_host(app, &parts, address, &host);
    if tool_server_port::begins_session(app, &parts, address) {
        let Ok(links) = Links::from_request_parts(&mut parts, app).await;
        let pattern = tool_server_port::port_url_pattern(
            &links,
            address,
            &live,
            &public_host,
            context.scheme,
        );
        tool_server_port::send_settings(app, &live, address.port, &pattern).await;
    }
    let target = Target {
        client: listener.map(|listener| listener.peer.ip()),
        authorization,
        limits: forwarding::limits(),
        host_header: masked(policy.mask_request_host.as_deref(), address.port),
        ..Target::new(address, public_host, context.scheme)
    };
    forward_to_port(app, Request::from_parts(parts, body), target, live, &errors).await
}

/// Finds a sandbox. One whose owner is disabled is visible to admins only.
async fn find(
    app: &App,
    parts: &Parts,
    address: &PreviewAddress,
) -> ServiceResult<Option<Sandbox>> {
    let sandbox = app.service().find_for_preview(&address.sandbox).await?;
    if let Some(sandbox) = &sandbox {
        note_sandbox(sandbox.id.as_str());
    }
    if let Some(sandbox) = &sandbox
        && is_owner_disabled(app, sandbox).await?
        && !access::is_owner(app, &parts.headers, Some(sandbox)).await
    {
        return Ok(None);
    }
    Ok(sandbox)
}

/// Forwards a request to a port, and the response back.
async fn forward_to_port(
    app: &App,
    request: Request,
    mut target: Target,
    live: Live,
    errors: &ErrorPresenter<'_>,
) -> Response {
    let id = live.sandbox.id.clone();
    let shutdown = request.extensions().get::<Shutdown>().cloned();
    let agent = live.agent.clone();
    // The sandbox is in use until the response, or the connection it was upgraded to, ends.
    target.guard = Some(Box::new(live));
    let work = forward(request, target, |port| dial(agent, port));
    if !errors.is_e2b() {
        // A visitor of a paused sandbox may wait until it is resumed.
        return match work.await {
            Ok(response) => response.map(Body::new),
            Err(error) => errors.forward_failure(&error),
        };
    }
    let exchange = app.state::<DataPlane>().exchanges.begin(app, &id);
    match exchange.until_ended(work).await {
        Some(Ok(response)) => exchange.carry(response, shutdown, None),
        Some(Err(error)) => errors.forward_failure(&error),
        None => errors.problem(Problem::NotFound),
    }
}

/// Reads a sandbox's policy; for a sandbox that does not exist, the default one, which opens nothing.
fn with_policy(
    app: &App,
    sandbox: Option<Sandbox>,
) -> ServiceResult<(Option<Sandbox>, NetworkPolicy)> {
    let policy = match &sandbox {
        Some(sandbox) => app.service().policy_of(sandbox)?,
        None => NetworkPolicy::default(),
    };
    Ok((sandbox, policy))
}

/// Removes the token of the sandbox's agent: a program that listens on a port must not get it.
fn withhold_token(parts: &mut Parts, sandbox: &Sandbox) {
    let is_ours = parts.headers.get_all(ACCESS_TOKEN).iter().any(|value| {
        let text = String::from_utf8_lossy(value.as_bytes());
        secrets_match(text.trim(), &sandbox.access_token)
    });
    if is_ours {
        parts.headers.remove(ACCESS_TOKEN);
    }
}

/// The `Host` that the program in the sandbox sees.
fn masked(mask: Option<&str>, port: u16) -> HostHeader {
    mask.map_or(HostHeader::Keep, |mask| {
        HostHeader::Fixed(mask.replace(PORT_VARIABLE, &port.to_string()))
    })
}

/// The host of a preview; where headers name the port, the host that the port would have.
fn public_host(app: &App, parts: &Parts, address: &PreviewAddress, host: &str) -> String {
    if data::is_data(&parts.extensions) {
        let domain = &app.settings().e2b_domain;
        return format!("{}-{}.{domain}", address.port, address.sandbox);
    }
    host.to_owned()
}
