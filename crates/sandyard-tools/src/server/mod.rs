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
//! Each request goes through [`auth`] (who may) and [`media`] (JSON that says so). Which sessions end is decided in [`sessions`].

mod auth;
mod listen;
mod mcp;
mod media;
mod proof;
mod resources;
mod routes;
mod sessions;
mod shim;
mod sse;
mod used;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use rmcp::ServiceExt;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::options::{Doors, Options};
use crate::registry::Registry;
use crate::workshop::Workshop;

use self::mcp::Handler;
use self::sessions::Sessions;

/// Largest request. A file's content is one argument.
const MAX_REQUEST: usize = 64 * 1024 * 1024;
/// How ports are reached where there is no sandbox.
const LOOPBACK: &str = "http://127.0.0.1:{port}/";

/// Runs the tool server of a sandbox until there is no way in any more.
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
    runtime.block_on(serve_by(doors, handler(options)))
}

/// Serves a folder of this machine, inside of an event loop. No sandbox is around it: its ports are reached as they are.
///
/// # Errors
///
/// When a door is none.
pub async fn serve(options: Options, doors: Doors) -> io::Result<()> {
    serve_by(doors, handler_alone(options)).await
}

async fn serve_by(doors: Doors, handler: Handler) -> io::Result<()> {
    let _ending = Ending(handler.workshop().clone());
    listen::serve(doors, router(handler)).await
}

/// The same for one client on standard input and output, which need no token: whoever started us is the user. Ends with the
/// input.
///
/// # Errors
///
/// When the client does not speak MCP.
pub async fn serve_stdio(options: Options) -> io::Result<()> {
    let handler = handler_alone(options);
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

/// The same where no server will tell how ports are reached.
fn handler_alone(options: Options) -> Handler {
    let handler = handler(options);
    handler
        .workshop()
        .tell(|told| told.port_url = Some(LOOPBACK.into()));
    handler
}

fn router(handler: Handler) -> Router {
    let workshop = handler.workshop().clone();
    let sessions = Router::new()
        .merge(sse::router(handler.clone()))
        .merge(routes::router(workshop.clone()))
        .merge(streamable(handler.clone(), Arc::new(Sessions::new())))
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

fn streamable(handler: Handler, sessions: Arc<Sessions>) -> Router {
    // Whom we answer is decided in `auth`, for every route alike.
    let mut config = StreamableHttpServerConfig::default().disable_allowed_hosts();
    config.max_request_body_bytes = MAX_REQUEST;
    let service = StreamableHttpService::new(move || Ok(handler.clone()), sessions, config);
    Router::new().nest_service("/mcp", service)
}

async fn health() -> axum::Json<serde_json::Value> {
    axum::Json(serde_json::json!({"status": "ok"}))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::call::Call;
    use crate::files::testing::Bench;

    #[tokio::test]
    async fn without_a_sandbox_a_port_is_reached_as_it_is() {
        let bench = Bench::new();
        let options = || bench.workshop.options.clone();
        let ask = async |handler: Handler| {
            let arguments = json!({"port": 1}).as_object().cloned().unwrap();
            let reply = handler
                .call("register_port", arguments, Call::quiet())
                .await;
            reply.unwrap().all_text()
        };
        let text = ask(handler_alone(options())).await;
        assert!(text.starts_with("http://127.0.0.1:1/"), "{text}");
        // In a sandbox nobody but the server knows.
        let text = ask(handler(options())).await;
        assert!(text.contains("expose-port"), "{text}");
    }
}
