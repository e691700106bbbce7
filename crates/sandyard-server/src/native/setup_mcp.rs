//! `POST /sandboxes/setup-mcp`: waits until the sandbox's tool server answers, and tells its tools.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use sandyard_core::ErrorKind;
use sandyard_service::Live;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep, timeout_at};
use utoipa::ToSchema;

use super::tool_server;
use crate::app::App;
use crate::bounds;
use crate::error::ApiError;
use crate::extract::{Body, sandbox_name};
use crate::links::Links;
use crate::need::Who;

/// How long to wait for the tool server.
const PATIENCE: Duration = Duration::from_secs(3);
/// Where its settings are written, below the user's home.
const CONFIG_PATH: &str = ".sandyard/mcp.json";
const CREDENTIAL_PATH: &str = ".sandyard/credential.json";

/// Settings for a sandbox's tool server.
#[derive(Deserialize, ToSchema)]
pub(crate) struct SetupMcp {
    /// The sandbox: its id, its provider's id or its alias.
    #[schema(schema_with = bounds::sandbox_id_schema)]
    sandbox_id: String,
    /// Kept in the sandbox as `~/.sandyard/credential.json` for its tool server, and nowhere else.
    #[schema(value_type = Option<Object>)]
    credential: Option<Map<String, Value>>,
    /// Where the tool server reaches others; kept with the configuration.
    #[schema(min_length = 1, max_length = 2048, pattern = r"^[^\u0000]+$")]
    tool_server_url: Option<String>,
    /// `{"mcpServers": {…}}`, kept in the sandbox as `~/.sandyard/mcp.json`.
    #[schema(value_type = Option<Object>)]
    mcp_config: Option<Map<String, Value>>,
}

/// A tool server that answers.
#[derive(Serialize, ToSchema)]
pub(crate) struct McpReply {
    /// Always true; failures are HTTP errors.
    success: bool,
    /// Where it is.
    mcp_url: String,
    /// Names of its tools.
    tools: Vec<String>,
    /// What happened, for people.
    message: String,
}

/// Waits until a sandbox's tool server answers. Nothing is started: that is the template's business.
#[utoipa::path(
    post, path = "/sandboxes/setup-mcp", operation_id = "setup_mcp", tag = "ports",
    request_body = SetupMcp,
    responses((status = 200, description = "It answers.", body = McpReply))
)]
pub(crate) async fn setup_mcp(
    State(app): State<App>,
    Who(caller): Who,
    links: Links,
    Body(request): Body<SetupMcp>,
) -> Result<Json<McpReply>, ApiError> {
    let name = sandbox_name(&request.sandbox_id)?;
    bounds::optional_text(
        "tool_server_url",
        request.tool_server_url.as_deref(),
        1,
        2048,
    )?;
    let live = app.service().live(&caller, name).await?;
    let port = app.settings().mcp_port;
    let until = Instant::now() + PATIENCE;
    wait_for_port(&live, port, until).await?;
    // The sandbox may be paused by somebody else in the middle.
    timeout_at(until + PATIENCE, write_settings(&live, &request))
        .await
        .map_err(|_| ApiError::new(ErrorKind::TimedOut, "the sandbox takes no files"))??;
    let tools = timeout_at(until + PATIENCE, tool_server::list_tools(&live.agent, port))
        .await
        .map_err(|_| ApiError::new(ErrorKind::TimedOut, "the tool server gives no answer"))??;
    Ok(Json(McpReply {
        success: true,
        mcp_url: links.mcp(&live.sandbox.id),
        message: format!("The tool server has {} tools", tools.len()),
        tools,
    }))
}

async fn wait_for_port(live: &Live, port: u16, until: Instant) -> Result<(), ApiError> {
    let mut pause = Duration::from_millis(20);
    loop {
        if live.agent.dial(port).await.is_ok() {
            return Ok(());
        }
        if Instant::now() + pause >= until {
            return Err(ApiError::new(
                ErrorKind::Conflict,
                format!("nothing listens on port {port} of the sandbox"),
            )
            .hint("use a template with a tool server, or start one on that port"));
        }
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(500));
    }
}

async fn write_settings(live: &Live, request: &SetupMcp) -> Result<(), ApiError> {
    if request.mcp_config.is_some() || request.tool_server_url.is_some() {
        let mut config = request.mcp_config.clone().unwrap_or_default();
        if let Some(url) = &request.tool_server_url {
            config.insert("toolServerUrl".to_owned(), url.clone().into());
        }
        let text = Value::Object(config).to_string();
        live.agent.write_file(CONFIG_PATH, text).await?;
    }
    if let Some(credential) = &request.credential {
        let text = Value::Object(credential.clone()).to_string();
        live.agent.write_file(CREDENTIAL_PATH, text).await?;
    }
    Ok(())
}
