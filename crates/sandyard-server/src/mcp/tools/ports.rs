//! Ports of a sandbox, from outside.

use sandyard_core::Scope;
use serde_json::json;

use crate::actions::expose_port;
use crate::error::ApiResult;
use crate::mcp::outcome::Outcome;
use crate::mcp::tool::{Effect, Tool, ToolCall, sandbox_id};

pub(super) const TOOLS: [Tool; 1] = [Tool {
    name: "expose_port",
    title: "Get a port's URL",
    description: "Gives the URL of a port of a sandbox. `signed_url` opens in any browser for a day; `url` asks for credentials. \
                  Something has to listen there: start it with `run_command` and `background: true`.",
    scope: Scope::Use,
    effect: Effect::Sets,
    is_open: false,
    input: || {
        json!({
            "sandbox_id": sandbox_id(),
            "port": {"type": "integer", "minimum": 1, "maximum": 65535, "description": "Where a program of the sandbox's listens"},
        })
    },
    required: &["sandbox_id", "port"],
    output: Some(|| {
        json!({
            "url": {"type": "string"},
            "signed_url": {"type": "string"},
            "port": {"type": "integer"},
            "public": {"type": "boolean", "description": "Whether anybody may open it"},
        })
    }),
    output_required: &["url", "port", "public"],
    run: |call| Box::pin(expose(call)),
}];

async fn expose(mut call: ToolCall) -> ApiResult<Outcome> {
    let request = call.read()?;
    let reply = expose_port::expose_port(&call, request).await?;
    Ok(Outcome::of(&reply))
}
