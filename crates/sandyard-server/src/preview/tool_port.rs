//! The port of the tool server. Whoever begins to speak MCP there has it told where ports are seen from outside, which its tool
//! `register_port` answers: it keeps that in memory only, and is another program after every stop of the sandbox.

use std::time::Duration;

use axum::http::Method;
use axum::http::request::Parts;
use sandyard_preview::{PreviewAddress, PreviewForm, Scheme};
use sandyard_service::Live;
use serde_json::json;

use crate::app::App;
use crate::links::Links;
use crate::native::tool_server::ToolServer;

/// How long it may take to be told. Without it everything but one tool works.
const PATIENCE: Duration = Duration::from_secs(15);
const SESSION: &str = "mcp-session-id";

/// Says whether a request begins a conversation: all later ones name it.
pub(super) fn is_beginning(app: &App, parts: &Parts, address: &PreviewAddress) -> bool {
    let path = parts.uri.path().trim_end_matches('/');
    app.is_tools_port(address.port)
        && match parts.method {
            Method::POST => path.ends_with("/mcp") && !parts.headers.contains_key(SESSION),
            Method::GET => path.ends_with("/sse"),
            _ => false,
        }
}

/// Where ports of this sandbox are seen by who asks like this, with `{port}` for the number.
pub(super) fn pattern(
    links: &Links,
    address: &PreviewAddress,
    live: &Live,
    public_host: &str,
    scheme: Scheme,
) -> String {
    let id = &live.sandbox.id;
    match (address.form, public_host.split_once('.')) {
        (PreviewForm::Host, Some((_, domain))) => {
            format!("{}://{{port}}-{id}.{domain}/", scheme.as_str())
        }
        _ => links.port_pattern(id),
    }
}

/// Tells it. Somebody else's tool server may make of it what it likes.
pub(super) async fn introduce(live: &Live, port: u16, pattern: &str) {
    let server = ToolServer::new(live, port);
    let body = json!({"template": pattern});
    let _ = tokio::time::timeout(PATIENCE, server.post("/port-url", &body)).await;
}
