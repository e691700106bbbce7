//! Templates and sandboxes made from a sandbox.

use sandyard_core::Scope;
use serde_json::{Value, json};

use crate::actions::copies;
use crate::mcp::outcome::Outcome;
use crate::mcp::tool::{Effect, Tool, ToolCall, sandbox_id};
use crate::prelude::*;

pub(super) const TOOLS: [Tool; 2] = [
    Tool {
        name: "sandbox_snapshot",
        title: "Keep a sandbox as a template",
        description: "Keeps a sandbox's files as a template that others can start from.",
        scope: Scope::Manage,
        effect: Effect::Adds,
        is_open: false,
        input: || {
            json!({
                "sandbox_id": sandbox_id(),
                "name": {"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,62}$", "description": "Name of the new template"},
            })
        },
        required: &["sandbox_id", "name"],
        output: Some(|| json!({"name": {"type": "string"}, "provider": {"type": "string"}})),
        output_required: &["name", "provider"],
        run: |call| Box::pin(snapshot(call)),
    },
    Tool {
        name: "sandbox_fork",
        title: "Copy a sandbox",
        description: "Makes another sandbox from the files of one as they are now, to try something without touching the first.",
        scope: Scope::Manage,
        effect: Effect::Adds,
        is_open: false,
        input: || {
            json!({
                "sandbox_id": sandbox_id(),
                "timeout": {"type": "integer", "minimum": 1, "maximum": bounds::MAX_SECONDS, "description": "Seconds the copy lives without being used"},
            })
        },
        required: &["sandbox_id"],
        output: Some(|| json!({"sandbox_id": {"type": "string"}, "status": {"type": "string"}})),
        output_required: &["sandbox_id", "status"],
        run: |call| Box::pin(fork(call)),
    },
];

/// Removes the argument that names the sandbox.
fn take_sandbox_id(call: &mut ToolCall) -> ApiResult<String> {
    let argument = call.arguments.remove("sandbox_id");
    let id = argument
        .as_ref()
        .and_then(Value::as_str)
        .unwrap_or_default();
    Ok(sandbox_name(id)?.to_owned())
}

async fn snapshot(mut call: ToolCall) -> ApiResult<Outcome> {
    let name = take_sandbox_id(&mut call)?;
    let request = call.read()?;
    let template = copies::snapshot_sandbox(&call, &name, request).await?;
    Ok(Outcome::of(&template))
}

async fn fork(mut call: ToolCall) -> ApiResult<Outcome> {
    let name = take_sandbox_id(&mut call)?;
    let request = call.read()?;
    let reply = copies::fork_sandbox(&call, &name, request).await?;
    Ok(Outcome::of(&reply))
}
