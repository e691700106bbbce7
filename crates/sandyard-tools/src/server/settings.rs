//! Settings routes: `/credential`, `/tool-server-url`, `/custom-mcp`, `/register-codex`, `/port-url`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, post};
use axum::{Json, Router};
use reqwest::Url;
use sandyard_core::ToolSelection;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::custom;
use crate::process::find_program;
use crate::tool_state::{Credential, ToolState};

/// Maximum length of a URL, in bytes.
const MAX_URL: usize = 2048;
/// Maximum length of a key or conversation ID, in bytes.
const MAX_KEY: usize = 4096;

/// The routes.
pub(super) fn router(tool_state: Arc<ToolState>) -> Router {
    Router::new()
        .route("/", any(not_found))
        .route("/credential", post(credential))
        .route("/tool-server-url", post(tool_server_url))
        .route("/custom-mcp", post(custom_mcp))
        .route("/register-codex", post(register_codex))
        .route("/port-url", post(port_url))
        .with_state(tool_state)
}

async fn not_found() -> Response {
    let hint = "MCP is at /mcp (streamable HTTP) and /sse (HTTP+SSE)";
    let body = json!({"success": false, "error": "not found", "hint": hint});
    (StatusCode::NOT_FOUND, Json(body)).into_response()
}

#[derive(Deserialize)]
struct CredentialBody {
    user_api_key: String,
    #[serde(default)]
    session_id: String,
}

async fn credential(
    State(tool_state): State<Arc<ToolState>>,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    let body: CredentialBody = parse(&body)?;
    let is_plain = |text: &str| text.len() <= MAX_KEY && text.chars().all(|c| !c.is_control());
    if body.user_api_key.is_empty() || !is_plain(&body.user_api_key) {
        return Err(Refusal::invalid(
            "user_api_key is empty, too long or contains control characters",
        ));
    }
    if !is_plain(&body.session_id) {
        return Err(Refusal::invalid(
            "session_id is too long or contains control characters",
        ));
    }
    tool_state.update_config(|config| {
        config.credential = Some(Credential {
            user_api_key: body.user_api_key,
            session_id: body.session_id,
        });
    });
    Ok(done("credential set"))
}

#[derive(Deserialize)]
struct ToolServerUrl {
    tool_server_url: String,
}

async fn tool_server_url(
    State(tool_state): State<Arc<ToolState>>,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    let ToolServerUrl { tool_server_url } = parse(&body)?;
    if !is_web_url(&tool_server_url) {
        return Err(Refusal::invalid(
            "tool_server_url must be an http:// or https:// URL",
        ));
    }
    tool_state.update_config(|config| config.tool_server_url = Some(tool_server_url));
    // Search and the generation of images can work now.
    tool_state.custom.notify_watchers();
    Ok(done("tool_server_url set"))
}

#[derive(Deserialize)]
struct PortUrl {
    template: String,
    /// Which tools to list, as the server's settings say.
    tools: Option<String>,
}

async fn port_url(
    State(tool_state): State<Arc<ToolState>>,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    let PortUrl { template, tools } = parse(&body)?;
    if !template.contains("{port}") || !is_web_url(&template.replace("{port}", "8080")) {
        return Err(Refusal::invalid(
            "template must be an http:// or https:// URL that contains {port}",
        ));
    }
    tool_state.update_config(|config| {
        config.port_url = Some(template);
        if let Some(tools) = tools {
            config.tools = ToolSelection::parse(&tools);
        }
    });
    Ok(done("preview URL set"))
}

async fn custom_mcp(
    State(tool_state): State<Arc<ToolState>>,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    let body: Value = parse(&body)?;
    let configs = custom::read(&body).map_err(Refusal::invalid)?;
    let folder = tool_state.workspace.root().to_owned();
    let servers = tool_state.custom.replace(configs, &folder).await;
    Ok(Json(json!({"success": true, "servers": servers})))
}

/// Server name of Codex's own tools.
const CODEX: &str = "codex";
/// Errors of Codex versions without a tool server. Some do not know the command; others take it for a task and want a terminal.
const NO_SERVER_ERRORS: &[&str] = &["unrecognized subcommand", "stdin is not a terminal"];

async fn register_codex(State(tool_state): State<Arc<ToolState>>) -> Result<Json<Value>, Refusal> {
    let bin = tool_state.options.home.join(".local/bin");
    let Some(program) = find_program(CODEX, &[&bin]) else {
        return Err(Refusal {
            status: StatusCode::NOT_FOUND,
            error: "the Codex CLI is not installed in this sandbox: use the template `agent`, or run `npm install -g @openai/codex`"
                .into(),
        });
    };
    let config = custom::Config::Program {
        command: program.to_string_lossy().into_owned(),
        args: vec!["mcp-server".into()],
        env: BTreeMap::new(),
    };
    let folder = tool_state.workspace.root().to_owned();
    let report = tool_state.custom.add(CODEX, config, &folder).await;
    if let Some(reason) = report.error {
        tool_state.custom.remove(CODEX).await;
        if !has_no_server(&reason) {
            return Err(Refusal {
                status: StatusCode::BAD_GATEWAY,
                error: format!("the MCP server of Codex did not start: {reason}"),
            });
        }
        // The tool `codex` does the same.
        return Ok(Json(json!({
            "success": true,
            "message": "this version of Codex has no MCP server: use the tool codex",
            "tools": [CODEX],
        })));
    }
    Ok(Json(json!({
        "success": true,
        "message": "tools of Codex registered",
        "tools": report.tools,
    })))
}

fn has_no_server(reason: &str) -> bool {
    let reason = reason.to_ascii_lowercase();
    NO_SERVER_ERRORS.iter().any(|error| reason.contains(error))
}

fn is_web_url(text: &str) -> bool {
    let is_web = |url: Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    text.len() <= MAX_URL && Url::parse(text).is_ok_and(is_web)
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body)
        .map_err(|error| Refusal::invalid(format!("invalid request body: {error}")))
}

fn done(message: &str) -> Json<Value> {
    Json(json!({"success": true, "message": message}))
}

/// Why a setting was refused.
struct Refusal {
    status: StatusCode,
    error: String,
}

impl Refusal {
    fn invalid(error: impl Into<String>) -> Self {
        Self {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            error: error.into(),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = json!({"success": false, "error": self.error});
        (self.status, Json(body)).into_response()
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
pub(super) mod tests;
