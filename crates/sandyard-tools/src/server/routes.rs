//! Settings of the first clients: `/credential`, `/tool-server-url`, `/custom-mcp`, `/register-codex`, `/port-url`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, post};
use axum::{Json, Router};
use reqwest::Url;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::custom;
use crate::process::find_program;
use crate::workshop::{Credential, Workshop};

/// Longest address.
const MAX_URL: usize = 2048;
/// Longest key or name of a conversation.
const MAX_KEY: usize = 4096;

/// The routes.
pub(super) fn router(workshop: Arc<Workshop>) -> Router {
    Router::new()
        .route("/", any(nothing_here))
        .route("/credential", post(credential))
        .route("/tool-server-url", post(tool_server_url))
        .route("/custom-mcp", post(custom_mcp))
        .route("/register-codex", post(register_codex))
        .route("/port-url", post(port_url))
        .with_state(workshop)
}

async fn nothing_here() -> Response {
    let hint = "MCP is at /mcp (streamable HTTP) and /sse (the older transport)";
    let body = json!({"success": false, "error": "there is nothing here", "hint": hint});
    (StatusCode::NOT_FOUND, Json(body)).into_response()
}

#[derive(Deserialize)]
struct CredentialBody {
    user_api_key: String,
    #[serde(default)]
    session_id: String,
}

async fn credential(
    State(workshop): State<Arc<Workshop>>,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    let told: CredentialBody = read(&body)?;
    let is_plain = |text: &str| text.len() <= MAX_KEY && text.chars().all(|c| !c.is_control());
    if told.user_api_key.is_empty() || !is_plain(&told.user_api_key) {
        return Err(Refusal::wrong(
            "user_api_key is empty, too long or has control characters in it",
        ));
    }
    if !is_plain(&told.session_id) {
        return Err(Refusal::wrong(
            "session_id is too long or has control characters in it",
        ));
    }
    workshop.tell(|now| {
        now.credential = Some(Credential {
            user_api_key: told.user_api_key,
            session_id: told.session_id,
        });
    });
    Ok(done("the credential is set"))
}

#[derive(Deserialize)]
struct ToolServerUrl {
    tool_server_url: String,
}

async fn tool_server_url(
    State(workshop): State<Arc<Workshop>>,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    let ToolServerUrl { tool_server_url } = read(&body)?;
    if !is_address(&tool_server_url) {
        return Err(Refusal::wrong(
            "tool_server_url must be an address that begins with http:// or https://",
        ));
    }
    workshop.tell(|now| now.tool_server_url = Some(tool_server_url));
    Ok(done("tool_server_url is set"))
}

#[derive(Deserialize)]
struct PortUrl {
    template: String,
}

async fn port_url(
    State(workshop): State<Arc<Workshop>>,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    let PortUrl { template } = read(&body)?;
    if !template.contains("{port}") || !is_address(&template.replace("{port}", "8080")) {
        return Err(Refusal::wrong(
            "template must be an http or https address with {port} in it",
        ));
    }
    workshop.tell(|now| now.port_url = Some(template));
    Ok(done("the address of previews is set"))
}

async fn custom_mcp(
    State(workshop): State<Arc<Workshop>>,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    let body: Value = read(&body)?;
    let configs = custom::read(&body).map_err(Refusal::wrong)?;
    let folder = workshop.workspace.root().to_owned();
    let servers = workshop.custom.replace(configs, &folder).await;
    Ok(Json(json!({"success": true, "servers": servers})))
}

/// The name Codex's own tools are shown under.
const CODEX: &str = "codex";
/// What versions say that have no tool server: that there is no such command, or, if they take the word for a task, that they want
/// a terminal to talk about it.
const NO_SERVER: &[&str] = &["unrecognized subcommand", "stdin is not a terminal"];

async fn register_codex(State(workshop): State<Arc<Workshop>>) -> Result<Json<Value>, Refusal> {
    let bin = workshop.options.home.join(".local/bin");
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
    let folder = workshop.workspace.root().to_owned();
    let report = workshop.custom.add(CODEX, config, &folder).await;
    if let Some(why) = report.error {
        workshop.custom.remove(CODEX).await;
        if !is_unknown(&why) {
            return Err(Refusal {
                status: StatusCode::BAD_GATEWAY,
                error: format!("Codex's own tool server did not start: {why}"),
            });
        }
        // What it did, our own tool does.
        return Ok(Json(json!({
            "success": true,
            "message": "this version of Codex has no tool server of its own: use the tool codex",
            "tools": [CODEX],
        })));
    }
    Ok(Json(json!({
        "success": true,
        "message": "Codex's own tools are there",
        "tools": report.tools,
    })))
}

fn is_unknown(why: &str) -> bool {
    let why = why.to_ascii_lowercase();
    NO_SERVER.iter().any(|words| why.contains(words))
}

fn is_address(text: &str) -> bool {
    let is_web = |url: Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    text.len() <= MAX_URL && Url::parse(text).is_ok_and(is_web)
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body)
        .map_err(|error| Refusal::wrong(format!("the body is wrong: {error}")))
}

fn done(message: &str) -> Json<Value> {
    Json(json!({"success": true, "message": message}))
}

/// Why a setting was not taken.
struct Refusal {
    status: StatusCode,
    error: String,
}

impl Refusal {
    fn wrong(error: impl Into<String>) -> Self {
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
#[path = "plain_tests.rs"]
pub(super) mod tests;
