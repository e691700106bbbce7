//! The HTTP server of the tools.
//!
//! ```text
//!  /mcp, /mcp/      MCP over streamable HTTP; also accepts a plain {"tool", "args"} ([`shim`])
//!  /sse, /messages  MCP over the older HTTP+SSE transport ([`sse`])
//!  /health          {"status":"ok"}
//!  /proof           proof of identity, for clients that have not sent their token yet ([`proof`])
//!  /credential, /tool-server-url, /custom-mcp, /register-codex, /port-url    settings ([`settings`])
//! ```
//!
//! Every request passes [`auth`] (access control) and [`content_type`] (only JSON). [`sessions`] decides which sessions end.

mod auth;
mod content_type;
mod listen;
mod mcp;
mod proof;
mod resources;
mod session_activity;
mod sessions;
mod settings;
mod shim;
mod sse;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use rmcp::ServiceExt;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::options::{Endpoints, Options};
use crate::registry::Registry;
use crate::tool_state::ToolState;

use self::mcp::Handler;
use self::sessions::Sessions;

/// Maximum size of a request. A whole file may be one argument.
const MAX_REQUEST_BYTES: usize = 64 * 1024 * 1024;
/// URL of a port where there is no sandbox.
const LOOPBACK_URL: &str = "http://127.0.0.1:{port}/";

/// Runs the tool server of a sandbox until the agent closes its socket.
///
/// # Errors
///
/// When the async runtime cannot be created, or an endpoint is not a socket.
pub fn run(options: Options, endpoints: Endpoints) -> io::Result<()> {
    // One thread, to save memory in small sandboxes. Heavy work runs on separate threads.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(8)
        .thread_keep_alive(Duration::from_secs(5))
        .build()?;
    runtime.block_on(serve_handler(endpoints, handler(options)))
}

/// Serves a folder of this host, without a sandbox, on the current async runtime. URLs of ports are loopback URLs.
///
/// # Errors
///
/// When an endpoint is not a socket.
pub async fn serve(options: Options, endpoints: Endpoints) -> io::Result<()> {
    serve_handler(endpoints, standalone_handler(options)).await
}

async fn serve_handler(endpoints: Endpoints, handler: Handler) -> io::Result<()> {
    let _cleanup = Cleanup(handler.tool_state().clone());
    listen::serve(endpoints, router(handler)).await
}

/// Serves one client on standard input and output, without a token: the user started us. Ends with the input.
///
/// # Errors
///
/// When the client does not speak MCP.
pub async fn serve_stdio(options: Options) -> io::Result<()> {
    let handler = standalone_handler(options);
    let _cleanup = Cleanup(handler.tool_state().clone());
    let served = handler.serve(rmcp::transport::stdio()).await;
    let running = served.map_err(io::Error::other)?;
    running.waiting().await.map_err(io::Error::other)?;
    Ok(())
}

/// Ends the browser when serving ends. Open connections may keep the tool state alive, so dropping that is not enough.
struct Cleanup(Arc<ToolState>);

impl Drop for Cleanup {
    fn drop(&mut self) {
        self.0.browser.end_now();
    }
}

fn handler(options: Options) -> Handler {
    let tool_state = Arc::new(ToolState::new(options));
    let registry = Arc::new(Registry::new(tool_state.custom.clone()));
    Handler::new(tool_state, registry)
}

/// A handler without a sandbox: no server sets the URL of ports.
fn standalone_handler(options: Options) -> Handler {
    let handler = handler(options);
    handler
        .tool_state()
        .update_config(|config| config.port_url = Some(LOOPBACK_URL.into()));
    handler
}

fn router(handler: Handler) -> Router {
    let tool_state = handler.tool_state().clone();
    let sessions = Router::new()
        .merge(sse::router(handler.clone()))
        .merge(settings::router(tool_state.clone()))
        .merge(streamable(handler.clone(), Arc::new(Sessions::new())))
        .layer(from_fn_with_state(handler, shim::answer))
        .layer(from_fn(content_type::check))
        .layer(DefaultBodyLimit::max(MAX_REQUEST_BYTES))
        .layer(from_fn_with_state(tool_state.clone(), auth::check));
    Router::new()
        .route("/health", get(health).options(health))
        .merge(sessions)
        .layer(from_fn_with_state(tool_state.clone(), auth::check_host))
        .merge(proof::router(tool_state))
}

fn streamable(handler: Handler, sessions: Arc<Sessions>) -> Router {
    // `auth` checks the host name for every route.
    let mut config = StreamableHttpServerConfig::default().disable_allowed_hosts();
    config.max_request_body_bytes = MAX_REQUEST_BYTES;
    let service = StreamableHttpService::new(move || Ok(handler.clone()), sessions, config);
    Router::new()
        .nest_service("/mcp", service)
        .layer(from_fn(end_session))
}

/// Answers the end of a session with 204, because it is over then. The library says 202, which some clients report as a failure.
async fn end_session(request: Request, next: Next) -> Response {
    let is_end = *request.method() == Method::DELETE;
    let mut response = next.run(request).await;
    if is_end && response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}

async fn health() -> axum::Json<serde_json::Value> {
    axum::Json(serde_json::json!({"status": "ok"}))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::call::Call;
    use crate::files::test_env::TestEnv;

    #[tokio::test]
    async fn without_a_sandbox_the_url_of_a_port_is_loopback() {
        let env = TestEnv::new();
        let options = || env.tool_state.options.clone();
        let ask = async |handler: Handler| {
            let arguments = json!({"port": 1}).as_object().cloned().unwrap();
            let reply = handler
                .call("register_port", arguments, Call::quiet())
                .await;
            reply.unwrap().all_text()
        };
        let text = ask(standalone_handler(options())).await;
        assert!(text.starts_with("http://127.0.0.1:1/"), "{text}");
        // In a sandbox only the server knows the URL.
        let text = ask(handler(options())).await;
        assert!(text.contains("expose-port"), "{text}");
    }
}
