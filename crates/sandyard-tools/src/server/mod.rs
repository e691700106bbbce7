//! The way in.
//!
//! ```text
//!  /mcp, /mcp/    MCP over streamable HTTP; a plain {"tool", "args"} is answered too ([`shim`])
//!  /sse, /messages  MCP over the older transport ([`sse`])
//!  /health        {"status":"ok"}
//!  /proof         for whoever wants to know before it shows its token ([`proof`])
//!  /credential, /tool-server-url, /custom-mcp, /register-codex, /port-url    settings ([`routes`])
//! ```
//!
//! Each request goes through [`auth`] (who may) and [`media`] (JSON that says so).

mod auth;
mod listen;
mod mcp;
mod media;
mod proof;
mod resources;
mod routes;
mod shim;
mod sse;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use rmcp::ServiceExt;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::options::{Doors, Options};
use crate::registry::Registry;
use crate::workshop::Workshop;

use self::mcp::Handler;

/// Largest request. A file's content is one argument.
const MAX_REQUEST: usize = 64 * 1024 * 1024;
/// A session nobody uses ends; a client that comes back begins another and finds the same shells and files.
const SESSION_LIFE: Duration = Duration::from_secs(60 * 60);
/// Most sessions at once.
const MAX_SESSIONS: usize = 500;
/// The header that says which session a request is of.
const SESSION_ID: &str = "mcp-session-id";

/// Runs the tool server until there is no way in any more.
///
/// # Errors
///
/// When the event loop cannot be made, or a door is none.
pub fn run(options: Options, doors: Doors) -> io::Result<()> {
    // One thread: an idle tool server is a guest in a small sandbox. What computes or reads much has threads of its own.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(8)
        .thread_keep_alive(Duration::from_secs(5))
        .build()?;
    runtime.block_on(serve(options, doors))
}

/// The same inside of an event loop.
///
/// # Errors
///
/// When a door is none.
pub async fn serve(options: Options, doors: Doors) -> io::Result<()> {
    let handler = handler(options);
    let _ending = Ending(handler.workshop().clone());
    listen::serve(doors, router(handler)).await
}

/// For one client on standard input and output, which need no token: whoever started us is the user. Ends with the input.
///
/// # Errors
///
/// When the client does not speak MCP.
pub async fn serve_stdio(options: Options) -> io::Result<()> {
    let handler = handler(options);
    let _ending = Ending(handler.workshop().clone());
    let served = handler.serve(rmcp::transport::stdio()).await;
    let running = served.map_err(io::Error::other)?;
    running.waiting().await.map_err(io::Error::other)?;
    Ok(())
}

/// Ends what would outlive us, however serving ends: whoever runs us may never drop what connections hold.
struct Ending(Arc<Workshop>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.browser.end_now();
    }
}

fn handler(options: Options) -> Handler {
    let workshop = Arc::new(Workshop::new(options));
    let registry = Arc::new(Registry::new(workshop.custom.clone()));
    Handler::new(workshop, registry)
}

fn router(handler: Handler) -> Router {
    let workshop = handler.workshop().clone();
    let sessions = Router::new()
        .merge(sse::router(handler.clone()))
        .merge(routes::router(workshop.clone()))
        .merge(streamable(handler.clone()))
        .layer(from_fn_with_state(handler, shim::answer))
        .layer(from_fn(media::check))
        .layer(DefaultBodyLimit::max(MAX_REQUEST))
        .layer(from_fn_with_state(workshop.clone(), auth::check));
    Router::new()
        .route("/health", get(health).options(health))
        .merge(sessions)
        .layer(from_fn_with_state(workshop.clone(), auth::check_host))
        .merge(proof::router(workshop))
}

fn streamable(handler: Handler) -> Router {
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(SESSION_LIFE);
    // Whom we answer is decided in `auth`, for every route alike.
    let mut config = StreamableHttpServerConfig::default().disable_allowed_hosts();
    config.max_request_body_bytes = MAX_REQUEST;
    let sessions = Arc::new(sessions);
    let service = StreamableHttpService::new(move || Ok(handler.clone()), sessions.clone(), config);
    Router::new()
        .nest_service("/mcp", service)
        .layer(from_fn_with_state(sessions, check_room))
}

/// Refuses another session when there are too many: clients that forget theirs must not use up the sandbox.
async fn check_room(
    State(sessions): State<Arc<LocalSessionManager>>,
    request: Request,
    next: Next,
) -> Response {
    if !request.headers().contains_key(SESSION_ID)
        && sessions.sessions.read().await.len() >= MAX_SESSIONS
    {
        let words = "too many sessions are open: close some (DELETE with Mcp-Session-Id), or wait until idle ones end";
        return (StatusCode::SERVICE_UNAVAILABLE, words).into_response();
    }
    next.run(request).await
}

async fn health() -> axum::Json<serde_json::Value> {
    axum::Json(serde_json::json!({"status": "ok"}))
}
