//! `POST /sandboxes/setup-mcp`: starts the sandbox's tool server, passes its settings, and lists its tools.

use std::collections::BTreeMap;
use std::time::Duration;

use sandyard_agent_client::wire::Code;
use sandyard_service::Live;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep, timeout_at};

use crate::prelude::*;
use crate::tool_server::{ToolServer, plain};

/// Default time limit until the tool server listens.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(3);
/// Default time limit of the whole operation. Added servers may have to be downloaded first.
const SETUP_TIMEOUT: Duration = Duration::from_secs(30);
/// File below the user's home directory for settings that the tool server has no route for.
const CONFIG_PATH: &str = ".sandyard/mcp.json";
const CREDENTIAL_PATH: &str = ".sandyard/credential.json";
/// Bounds of the response: number of servers, tools of each, and lengths of texts.
const MAX_SERVERS: usize = 100;
const MAX_TOOLS: usize = 1000;
const MAX_NAME: usize = 128;
const MAX_ERROR: usize = 2000;

/// Settings for the tool server of a sandbox.
#[derive(Deserialize, ToSchema)]
pub(crate) struct SetupMcp {
    /// Sandbox whose tool server to set up.
    #[schema(schema_with = bounds::sandbox_id_schema)]
    sandbox_id: String,
    /// Credentials handed to the tool server. The server does not store them.
    #[schema(value_type = Option<Object>)]
    credential: Option<Map<String, Value>>,
    /// URL that the tool server calls for tools it does not implement itself.
    #[schema(min_length = 1, max_length = 2048, pattern = r"^[^\u0000]+$")]
    tool_server_url: Option<String>,
    /// Your own MCP servers, in the form `{"mcpServers": {"name": {"command": …}}}`. They are started in the sandbox
    /// and their tools are added.
    #[schema(value_type = Option<Object>)]
    mcp_config: Option<Map<String, Value>>,
    /// Maximum time for the whole operation in seconds (default 30, at most 120).
    #[schema(inline)]
    timeout: Option<BoundedInt<1, 120>>,
}

/// Tool server of a sandbox.
#[derive(Serialize, ToSchema)]
pub(crate) struct McpReply {
    /// Always `true`; a failed request has an error status instead.
    success: bool,
    /// URL that MCP clients connect to.
    mcp_url: String,
    /// Names of all tools, those of added servers included.
    tools: Vec<String>,
    /// Result for each server named in `mcp_config`.
    servers: BTreeMap<String, AddedServer>,
    /// Summary of the result for people.
    message: String,
}

/// Result of adding one MCP server.
#[derive(Serialize, ToSchema)]
pub(crate) struct AddedServer {
    /// `ok` or `failed`.
    status: &'static str,
    /// Names of the tools that the server provides.
    tools: Vec<String>,
    /// Reason for the failure; absent if the server was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<String>,
}

/// Start the tool server
///
/// Starts the MCP tool server of a sandbox if it is not running, passes it settings and credentials, adds your own MCP
/// servers to it, and lists its tools. MCP clients then connect to `mcp_url`.
#[utoipa::path(
    post, path = "/sandboxes/setup-mcp", tag = "ports", request_body = SetupMcp,
    responses((status = 200, description = "Tool server running.", body = McpReply))
)]
pub(crate) async fn setup_mcp(call: Call, Body(request): Body<SetupMcp>) -> Reply<McpReply> {
    let name = sandbox_name(&request.sandbox_id)?;
    let url = request.tool_server_url.as_deref();
    bounds::optional_text("tool_server_url", url, 1, 2048)?;
    let live = call.live(name).await?;
    let port = call.app.settings().mcp_port;
    let timeout = request
        .timeout
        .map(|seconds| Duration::from_secs(seconds.0.unsigned_abs()));
    let started_at = Instant::now();
    let work = async {
        wait_for_port(&live, port, started_at + timeout.unwrap_or(LISTEN_TIMEOUT)).await?;
        let server = ToolServer::new(&live, port);
        // Used by the tool that returns preview URLs. Another tool server may ignore it.
        let ports = json!({"template": call.links.port_pattern(&live.sandbox.id)});
        let _ = server.post("/port-url", &ports).await;
        let servers = apply_settings(&live, port, &request).await?;
        let tools = ToolServer::open(&live, port).await?.names().await?;
        Ok::<_, ApiError>((servers, tools))
    };
    let (servers, tools) = timeout_at(started_at + timeout.unwrap_or(SETUP_TIMEOUT), work)
        .await
        .map_err(|_| timed_out())??;
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
        mcp_url: call.links.mcp(&live.sandbox.id),
        message,
        tools,
        servers,
    }))
}

fn timed_out() -> ApiError {
    ApiError::new(
        ErrorKind::TimedOut,
        "the tool server did not answer in time",
    )
    .hint("give it more time with `timeout`, up to 120 seconds")
}

async fn wait_for_port(live: &Live, port: u16, until: Instant) -> ApiResult<()> {
    let mut delay = Duration::from_millis(20);
    loop {
        let Err(problem) = check_port(live, port).await else {
            return Ok(());
        };
        if Instant::now() + delay >= until {
            return Err(problem);
        }
        sleep(delay).await;
        delay = (delay * 2).min(Duration::from_millis(500));
    }
}

/// Waits until a program listens on a port. A proxy in between accepts every connection, so a request must be sent.
async fn check_port(live: &Live, port: u16) -> ApiResult<()> {
    let closed = || {
        let detail = format!("nothing listens on port {port} of the sandbox");
        ApiError::new(ErrorKind::Conflict, detail)
            .hint("use a template with a tool server, or start one on that port")
    };
    match live.agent.dial(port).await {
        Ok(port) if port.headers.is_empty() => Ok(()),
        Ok(_) => {
            let opened = ToolServer::open(live, port).await;
            opened.map(drop).map_err(|_| closed())
        }
        // Reason why the tool server could not be installed, in sandboxes that need an installation.
        Err(error) if is_install_error(error.code()) => Err(error.into()),
        Err(_) => Err(closed()),
    }
}

fn is_install_error(code: Option<Code>) -> bool {
    matches!(
        code,
        Some(Code::FailedPrecondition | Code::ResourceExhausted | Code::Aborted)
    )
}

/// Passes settings to the tool server: by its routes, or as a file if it has none.
async fn apply_settings(
    live: &Live,
    port: u16,
    request: &SetupMcp,
) -> ApiResult<BTreeMap<String, AddedServer>> {
    let server = ToolServer::new(live, port);
    if let Some(credential) = &request.credential {
        let body = Value::Object(credential.clone());
        if server.post("/credential", &body).await?.is_none() {
            live.agent
                .write_file(CREDENTIAL_PATH, body.to_string())
                .await?;
        }
    }
    // Settings written to the file.
    let mut file_settings = Map::new();
    if let Some(url) = &request.tool_server_url {
        let body = json!({"tool_server_url": url});
        if server.post("/tool-server-url", &body).await?.is_none() {
            file_settings.insert("toolServerUrl".to_owned(), url.clone().into());
        }
    }
    let mut servers = BTreeMap::new();
    if let Some(config) = &request.mcp_config {
        match server
            .post("/custom-mcp", &Value::Object(config.clone()))
            .await?
        {
            Some(report) => servers = parse_report(&report),
            None => file_settings.extend(config.clone()),
        }
    }
    if !file_settings.is_empty() {
        live.agent
            .write_file(CONFIG_PATH, Value::Object(file_settings).to_string())
            .await?;
    }
    Ok(servers)
}

/// Parses the tool server's report on added servers. The report is untrusted.
fn parse_report(report: &Value) -> BTreeMap<String, AddedServer> {
    let servers = report["servers"].as_object().into_iter().flatten();
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
    fn report_on_added_servers_is_bounded() {
        let report = json!({"servers": {
            "a\u{7}": {"status": "ok", "tools": ["x", 5, "y".repeat(500)]},
            "b": {"status": "failed", "error": "e".repeat(5000)},
            "c": 7,
        }});
        let servers = parse_report(&report);
        assert_eq!((servers["a"].status, servers["a"].tools.len()), ("ok", 2));
        assert_eq!(servers["a"].tools[1].len(), MAX_NAME);
        assert_eq!(servers["b"].error.as_ref().unwrap().len(), MAX_ERROR);
        assert_eq!(servers["c"].status, "failed");
        assert!(parse_report(&json!([])).is_empty());
    }
}
