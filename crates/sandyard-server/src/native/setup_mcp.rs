//! `POST /sandboxes/setup-mcp`: has the sandbox's tool server started and told what it needs, and tells its tools.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use sandyard_agent_client::wire::Code;
use sandyard_core::ErrorKind;
use sandyard_service::Live;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep, timeout_at};
use utoipa::ToSchema;

use crate::access::Authenticated;
use crate::app::App;
use crate::bounds::{self, Whole};
use crate::error::ApiError;
use crate::extract::{Body, sandbox_name};
use crate::links::Links;
use crate::tool_server::{ToolServer, plain};

/// How long to wait until something listens, unless the caller says.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long all of it may take, unless the caller says: servers that are added may have to be fetched first.
const TIME: Duration = Duration::from_secs(30);
/// Where settings are written that a tool server has no route for, below the user's home.
const CONFIG_PATH: &str = ".sandyard/mcp.json";
const CREDENTIAL_PATH: &str = ".sandyard/credential.json";
/// Most servers that are told of, most tools of each, and longest words.
const MAX_SERVERS: usize = 100;
const MAX_TOOLS: usize = 1000;
const MAX_NAME: usize = 128;
const MAX_ERROR: usize = 2000;

/// Settings for a sandbox's tool server.
#[derive(Deserialize, ToSchema)]
pub(crate) struct SetupMcp {
    /// The sandbox: its id, its provider's id or its alias.
    #[schema(schema_with = bounds::sandbox_id_schema)]
    sandbox_id: String,
    /// Given to the tool server, and kept nowhere else.
    #[schema(value_type = Option<Object>)]
    credential: Option<Map<String, Value>>,
    /// Where the tool server reaches what it does not do itself.
    #[schema(min_length = 1, max_length = 2048, pattern = r"^[^\u0000]+$")]
    tool_server_url: Option<String>,
    /// `{"mcpServers": {…}}`: servers of your own. They are started in the sandbox, and their tools are added.
    #[schema(value_type = Option<Object>)]
    mcp_config: Option<Map<String, Value>>,
    /// Seconds all of it may take; 30 if it is left out.
    #[schema(inline)]
    timeout: Option<Whole<1, 120>>,
}

/// A tool server that answers.
#[derive(Serialize, ToSchema)]
pub(crate) struct McpReply {
    /// Always true; failures are HTTP errors.
    success: bool,
    /// Where it is: what MCP clients connect to.
    mcp_url: String,
    /// Names of its tools, those of added servers too.
    tools: Vec<String>,
    /// What became of the servers that `mcp_config` names.
    servers: BTreeMap<String, AddedServer>,
    /// What happened, for people.
    message: String,
}

/// What became of a server that was added.
#[derive(Serialize, ToSchema)]
pub(crate) struct AddedServer {
    /// `ok` or `failed`.
    status: &'static str,
    /// Names of its tools.
    tools: Vec<String>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<String>,
}

/// Has a sandbox's tool server started, gives it settings, and lists its tools.
#[utoipa::path(
    post, path = "/sandboxes/setup-mcp", operation_id = "setup_mcp", tag = "ports",
    request_body = SetupMcp,
    responses((status = 200, description = "It answers.", body = McpReply))
)]
pub(crate) async fn setup_mcp(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    links: Links,
    Body(request): Body<SetupMcp>,
) -> Result<Json<McpReply>, ApiError> {
    let name = sandbox_name(&request.sandbox_id)?;
    let url = request.tool_server_url.as_deref();
    bounds::optional_text("tool_server_url", url, 1, 2048)?;
    let live = app.service().live(&caller, name).await?;
    let port = app.settings().mcp_port;
    let asked = request
        .timeout
        .map(|seconds| Duration::from_secs(seconds.0.unsigned_abs()));
    let began = Instant::now();
    let work = async {
        wait_for_port(&live, port, began + asked.unwrap_or(PATIENCE)).await?;
        let server = ToolServer::new(&live, port);
        // For the tool that tells where a port is seen; somebody else's tool server may make of it what it likes.
        let ports = json!({"template": links.port_pattern(&live.sandbox.id)});
        let _ = server.post("/port-url", &ports).await;
        let servers = give_settings(&live, port, &request).await?;
        let tools = ToolServer::open(&live, port).await?.names().await?;
        Ok::<_, ApiError>((servers, tools))
    };
    let (servers, tools) = timeout_at(began + asked.unwrap_or(TIME), work)
        .await
        .map_err(|_| late())??;
    let failed: Vec<_> = servers
        .iter()
        .filter(|(_, server)| server.status != "ok")
        .map(|(name, _)| name.as_str())
        .collect();
    let mut message = format!("The tool server has {} tools", tools.len());
    if !failed.is_empty() {
        message += &format!("; these servers failed: {}", failed.join(", "));
    }
    Ok(Json(McpReply {
        success: true,
        mcp_url: links.mcp(&live.sandbox.id),
        message,
        tools,
        servers,
    }))
}

fn late() -> ApiError {
    ApiError::new(
        ErrorKind::TimedOut,
        "the tool server gives no answer in time",
    )
    .hint("give it more time with `timeout`, up to 120 seconds")
}

async fn wait_for_port(live: &Live, port: u16, until: Instant) -> Result<(), ApiError> {
    let mut pause = Duration::from_millis(20);
    loop {
        let Err(problem) = reach(live, port).await else {
            return Ok(());
        };
        if Instant::now() + pause >= until {
            return Err(problem);
        }
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(500));
    }
}

/// Sees that somebody listens on a port. Where a proxy leads there it takes every connection, so something has to be asked.
async fn reach(live: &Live, port: u16) -> Result<(), ApiError> {
    let closed = || {
        let detail = format!("nothing listens on port {port} of the sandbox");
        ApiError::new(ErrorKind::Conflict, detail)
            .hint("use a template with a tool server, or start one on that port")
    };
    match live.agent.dial(port).await {
        Ok(stream) if stream.headers().is_empty() => Ok(()),
        Ok(_) => {
            let opened = ToolServer::open(live, port).await;
            opened.map(drop).map_err(|_| closed())
        }
        // What stands in the way of ours, in sandboxes that it has to be brought into.
        Err(error) if is_reason(error.code()) => Err(error.into()),
        Err(_) => Err(closed()),
    }
}

fn is_reason(code: Option<Code>) -> bool {
    matches!(
        code,
        Some(Code::FailedPrecondition | Code::ResourceExhausted | Code::Aborted)
    )
}

/// Gives the tool server its settings: by its routes, or as files if it is somebody else's and has none.
async fn give_settings(
    live: &Live,
    port: u16,
    request: &SetupMcp,
) -> Result<BTreeMap<String, AddedServer>, ApiError> {
    let server = ToolServer::new(live, port);
    if let Some(credential) = &request.credential {
        let body = Value::Object(credential.clone());
        if server.post("/credential", &body).await?.is_none() {
            live.agent
                .write_file(CREDENTIAL_PATH, body.to_string())
                .await?;
        }
    }
    // What is kept in the file, for want of a route.
    let mut kept = Map::new();
    if let Some(url) = &request.tool_server_url {
        let body = json!({"tool_server_url": url});
        if server.post("/tool-server-url", &body).await?.is_none() {
            kept.insert("toolServerUrl".to_owned(), url.clone().into());
        }
    }
    let mut servers = BTreeMap::new();
    if let Some(config) = &request.mcp_config {
        match server
            .post("/custom-mcp", &Value::Object(config.clone()))
            .await?
        {
            Some(answer) => servers = added(&answer),
            None => kept.extend(config.clone()),
        }
    }
    if !kept.is_empty() {
        live.agent
            .write_file(CONFIG_PATH, Value::Object(kept).to_string())
            .await?;
    }
    Ok(servers)
}

/// Reads what the tool server says of servers that were added. It is not believed to be well formed.
fn added(answer: &Value) -> BTreeMap<String, AddedServer> {
    let servers = answer["servers"].as_object().into_iter().flatten();
    servers
        .take(MAX_SERVERS)
        .map(|(name, server)| {
            let tools = server["tools"].as_array().into_iter().flatten();
            let tools = tools.filter_map(Value::as_str).take(MAX_TOOLS);
            let is_ok = server["status"] == "ok";
            let error = server["error"]
                .as_str()
                .map(|error| plain(error, MAX_ERROR));
            let view = AddedServer {
                status: if is_ok { "ok" } else { "failed" },
                tools: tools.map(|tool| plain(tool, MAX_NAME)).collect(),
                error: error.filter(|_| !is_ok),
            };
            (plain(name, MAX_NAME), view)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_added_servers_is_told_within_bounds() {
        let answer = json!({"servers": {
            "a\u{7}": {"status": "ok", "tools": ["x", 5, "y".repeat(500)]},
            "b": {"status": "failed", "error": "e".repeat(5000)},
            "c": 7,
        }});
        let servers = added(&answer);
        assert_eq!((servers["a"].status, servers["a"].tools.len()), ("ok", 2));
        assert_eq!(servers["a"].tools[1].len(), MAX_NAME);
        assert_eq!(servers["b"].error.as_ref().unwrap().len(), MAX_ERROR);
        assert_eq!(servers["c"].status, "failed");
        assert!(added(&json!([])).is_empty());
    }
}
