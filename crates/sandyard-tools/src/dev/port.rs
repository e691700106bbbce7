//! `register_port`: the public URL of a port.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::listens;
use crate::call::Call;
use crate::reply::{Answer, Problem, Reply};
use crate::tool::{Effect, Tool};
use crate::tool_state::ToolState;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// Port that the service listens on.
    port: u16,
}

#[derive(Serialize, JsonSchema)]
struct Registered {
    /// The port.
    port: u16,
    /// URL of the port from outside of the sandbox.
    url: String,
    /// Whether a program listens on the port.
    is_listening: bool,
    /// What to do if no program listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// The tool.
pub(super) fn tool() -> Tool {
    crate::tool::tool("register_port", Effect::Reads, register_port)
        .title("Get the URL of a port")
        .description("Return the URL at which a port of this sandbox is reachable from outside. Start the service first, on 0.0.0.0.")
        .with_output::<Registered>()
}

async fn register_port(tool_state: Arc<ToolState>, Args { port }: Args, _: Call) -> Answer {
    if port == 0 {
        return Err(Problem::new("port must be 1 to 65535"));
    }
    let config = tool_state.runtime_config();
    let template = config.port_url.ok_or_else(|| {
        Problem::new(
            "the URL of this sandbox's ports is not known here: ask the server for it (expose-port), or have setup-mcp called for \
             this sandbox, which sets it",
        )
    })?;
    let url = template.replace("{port}", &port.to_string());
    let is_listening = listens(port).await;
    let note = (!is_listening)
        .then(|| format!("no program listens on port {port} yet: start the service on 0.0.0.0"));
    let text = match &note {
        Some(note) => format!("{url}\n{note}"),
        None => url.clone(),
    };
    let registered = Registered {
        port,
        url,
        is_listening,
        note,
    };
    Ok(Reply::text(text).with_structured(registered))
}
