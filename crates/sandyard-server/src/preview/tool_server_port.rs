//! The port of the tool server. Before an MCP session begins there, the server sends it the pattern of the URLs of ports, which its
//! tool `register_port` uses. The tool server keeps the pattern in memory only, and starts anew after every stop of the sandbox.

use std::time::Duration;

use axum::http::Method;
use axum::http::request::Parts;
use sandyard_preview::{PreviewAddress, PreviewForm, Scheme};
use sandyard_service::Live;
use serde_json::json;

use crate::app::App;
use crate::links::Links;
use crate::tool_server::ToolServer;

/// Longest wait for the tool server to take the pattern. Without it, all tools but one work.
const TIMEOUT: Duration = Duration::from_secs(15);
const SESSION: &str = "mcp-session-id";

/// Says whether a request begins an MCP session: later ones name the session.
pub(super) fn begins_session(app: &App, parts: &Parts, address: &PreviewAddress) -> bool {
    let path = parts.uri.path().trim_end_matches('/');
    app.is_tools_port(address.port)
        && match parts.method {
            Method::POST => path.ends_with("/mcp") && !parts.headers.contains_key(SESSION),
            Method::GET => path.ends_with("/sse"),
            _ => false,
        }
}

/// The URL of any port of the sandbox, as this client reaches it, with `{port}` for the number.
pub(super) fn port_url_pattern(
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

/// Sends the pattern, and which tools to list. A failure is ignored: another program may listen on the port.
pub(super) async fn send_settings(app: &App, live: &Live, port: u16, pattern: &str) {
    let server = ToolServer::new(live, port);
    let body = json!({"template": pattern, "tools": app.settings().mcp_tools});
    let _ = tokio::time::timeout(TIMEOUT, server.post("/port-url", &body)).await;
}
