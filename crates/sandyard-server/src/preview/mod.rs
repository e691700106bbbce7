//! Ports of sandboxes, over `sandyard-preview`: who may, which sandbox, and the way there.
//!
//! Stands before all routes: a request for the host of a preview, or for `/p/{sandbox}/{port}/`, never gets to the API.
//!
//! | file | holds |
//! |---|---|
//! | `access` | who may open a port |
//! | `editor` | VS Code, which needs a host of its own |
//! | `local` | what may be asked without credentials on an open listener |
//! | `words` | what is said when a port cannot be shown, to people, to programs, and to E2B's clients |
//! | `tool_port` | what the tool server is told when somebody begins to speak with it |
//! | `way` | the way to a port |
//! | here | one request |

mod access;
mod editor;
mod local;
mod tool_port;
mod way;
mod words;

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
use sandyard_preview::{
    Domains, HostHeader, Place, PreviewAddress, PreviewForm, Problem, Target, forward,
};
use sandyard_service::{Live, Sandbox, ServiceResult};

use crate::app::{App, Listener};
use crate::e2b::data;
use crate::links::Links;
use crate::listen::Ending;
use access::Verdict;
use words::Words;

pub(crate) use access::authorization;
pub(crate) use way::{dial, limits};

/// Stands for the port in a masked host.
const PORT_VARIABLE: &str = "${PORT}";

/// Answers requests for previews; lets all others pass.
pub(crate) async fn intercept(State(app): State<App>, request: Request, next: Next) -> Response {
    if data::is_data(request.extensions()) {
        // It says by other means whom it is for; its path may well look like one of ours.
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
            return data::ask(&app, parts, body, &address.sandbox).await;
        }
        address.sandbox = data::id_of(&address.sandbox).to_owned();
    }
    visit(&app, parts, body, &address).await
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

/// Shows a port of a sandbox, however the request named it.
pub(crate) async fn visit(
    app: &App,
    mut parts: Parts,
    body: Body,
    address: &PreviewAddress,
) -> Response {
    let mut words = Words::new(app, &parts, address);
    let Some(host) = host_of(&parts).map(str::to_owned) else {
        return words.problem(Problem::BadRequest);
    };
    if let Some(response) = editor::elsewhere(app, &parts, address, &host, &words) {
        return response;
    }
    let sandbox = find(app, &parts, address).await;
    let (sandbox, policy) = match sandbox.and_then(|sandbox| with_policy(app, sandbox)) {
        Ok(found) => found,
        Err(error) => return words.failure(&error),
    };
    words.know(app, sandbox.as_ref(), policy.allow_public_traffic);
    if words.is_e2b() && !sandbox.as_ref().is_some_and(|it| data::is_there(it.status)) {
        return words.problem(Problem::Gone);
    }
    let listener = parts.extensions.get::<Listener>().copied();
    let place = Place {
        address,
        host: &host,
        scheme: way::scheme(app, listener),
        domains: &domains(app),
    };
    let is_public = policy.allow_public_traffic;
    let authorization = match access::check(app, &parts, place, sandbox.as_ref(), is_public).await {
        Verdict::Open(authorization) => authorization,
        Verdict::Answer(response) => return response.map(Body::new),
        Verdict::Closed(problem) => return words.problem(problem),
        Verdict::NeedsToken(told) => return words.token(&told),
    };
    // Only now: whether there is such a sandbox is for those to know who may open it.
    let Some(sandbox) = sandbox.filter(|it| data::is_there(it.status)) else {
        return words.problem(Problem::Gone);
    };
    withhold_token(&mut parts, &sandbox);
    let live = match data::awake(app, sandbox, true).await {
        Ok(live) => live,
        Err(absent) => return words.absent(&absent),
    };
    let public_host = public_host(app, &parts, address, &host);
    if tool_port::is_beginning(app, &parts, address) {
        let Ok(links) = Links::from_request_parts(&mut parts, app).await;
        let pattern = tool_port::pattern(&links, address, &live, &public_host, place.scheme);
        tool_port::introduce(&live, address.port, &pattern).await;
    }
    let target = Target {
        client: listener.map(|listener| listener.peer.ip()),
        authorization,
        limits: limits(),
        host_header: masked(policy.mask_request_host.as_deref(), address.port),
        ..Target::new(address, public_host, place.scheme)
    };
    carry(app, Request::from_parts(parts, body), target, live, &words).await
}

/// Finds a sandbox. One whose owner is disabled is there for admins only: neither its token nor a link opens it, and no port of
/// it is public.
async fn find(
    app: &App,
    parts: &Parts,
    address: &PreviewAddress,
) -> ServiceResult<Option<Sandbox>> {
    let sandbox = app.service().find_for_preview(&address.sandbox).await?;
    if let Some(sandbox) = &sandbox
        && data::is_shut(app, sandbox).await?
        && !access::is_owner(app, &parts.headers, Some(sandbox)).await
    {
        return Ok(None);
    }
    Ok(sandbox)
}

/// Carries a request to a port and its answer back.
async fn carry(
    app: &App,
    request: Request,
    mut target: Target,
    live: Live,
    words: &Words<'_>,
) -> Response {
    let id = live.sandbox.id.clone();
    let ending = request.extensions().get::<Ending>().cloned();
    let agent = live.agent.clone();
    // In use for as long as the answer, or the connection it was upgraded to, goes on.
    target.guard = Some(Box::new(live));
    let work = forward(request, target, |port| dial(agent, port));
    if !words.is_e2b() {
        // Its visitors may well wait until it is woken.
        return match work.await {
            Ok(response) => response.map(Body::new),
            Err(error) => words.failed(&error),
        };
    }
    let exchange = app.data_plane().exchanges.begin(app, &id);
    match exchange.unless_over(work).await {
        Some(Ok(response)) => exchange.carry(response, ending, None),
        Some(Err(error)) => words.failed(&error),
        None => words.problem(Problem::Gone),
    }
}

/// Reads a sandbox's policy; the default one for a sandbox that is not there, which opens nothing.
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

/// Takes the token of the sandbox's agent off: what listens on a port could use it, and is not who it was meant for.
fn withhold_token(parts: &mut Parts, sandbox: &Sandbox) {
    let is_ours = parts.headers.get_all(ACCESS_TOKEN).iter().any(|value| {
        let text = String::from_utf8_lossy(value.as_bytes());
        secrets_match(text.trim(), &sandbox.access_token)
    });
    if is_ours {
        parts.headers.remove(ACCESS_TOKEN);
    }
}

/// The host what listens shall see.
fn masked(mask: Option<&str>, port: u16) -> HostHeader {
    mask.map_or(HostHeader::Keep, |mask| {
        HostHeader::Named(mask.replace(PORT_VARIABLE, &port.to_string()))
    })
}

/// The host of a preview; where headers name the port, the one it would have.
fn public_host(app: &App, parts: &Parts, address: &PreviewAddress, host: &str) -> String {
    if data::is_data(&parts.extensions) {
        let domain = &app.settings().e2b_domain;
        return format!("{}-{}.{domain}", address.port, address.sandbox);
    }
    host.to_owned()
}
