//! Tools that create, pause, resume and delete sandboxes and set their timeout.

use sandyard_core::Scope;
use serde_json::{Value, json};

use crate::actions::{create, set_timeout};
use crate::extract::IdempotencyKey;
use crate::mcp::outcome::Outcome;
use crate::mcp::tool::{Effect, Tool, ToolCall, sandbox_id};
use crate::model::Done;
use crate::model::sandbox::SandboxReply;
use crate::prelude::*;

pub(super) const TOOLS: [Tool; 5] = [
    Tool {
        name: "sandbox_create",
        title: "Create a sandbox",
        description: "Makes an isolated Linux sandbox, running when this returns. All arguments may be left out. \
                      Keep the `sandbox_id` it answers.",
        scope: Scope::Manage,
        effect: Effect::Adds,
        is_open: false,
        input: || {
            let texts = |description: &str| json!({"type": "object", "additionalProperties": {"type": "string"}, "description": description});
            json!({
                "template": {"type": "string", "description": "What it starts from, as `template_list` names it; the default if left out"},
                "name": {"type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,62}$", "description": "An alias that can be used instead of its id"},
                "timeout": {"type": "integer", "minimum": 1, "maximum": bounds::MAX_SECONDS, "description": "Seconds it lives without being used"},
                "timeout_action": {"enum": ["pause", "delete"], "description": "What happens then; `pause` if left out"},
                "env": texts("Variables every command gets"),
                "metadata": texts("Words of your own to find it again"),
                "provider": {"type": "string", "pattern": "^[a-z0-9-]{1,64}$", "description": "Which provider runs it, like `docker`; the server's choice if left out"},
                "memory": {"type": "string", "description": "Memory it may use, like `512m` or `2g`"},
                "cpu": {"type": "number", "exclusiveMinimum": 0, "description": "Cores it may use, like 0.5 or 2"},
                "disk": {"type": "string", "description": "Bytes it may write, like `4g`"},
                "pids": {"type": "integer", "minimum": 8, "maximum": 65536, "description": "Processes and threads it may have at once"},
                "allow_internet_access": {"type": "boolean", "description": "Whether it may reach what no entry of `network` names"},
                "network": {"type": "object", "description": "What it may reach: `allow_out` and `deny_out`, lists of names (`*.pypi.org`), addresses and networks"},
                "secrets": texts("Secrets it uses without seeing them: by variable, the secret's name"),
                "volumes": texts("Volumes in it: by path inside, the volume's name"),
            })
        },
        required: &[],
        output: Some(sandbox_output),
        output_required: &SANDBOX_FIELDS,
        run: |call| Box::pin(create_sandbox(call)),
    },
    Tool {
        name: "sandbox_pause",
        title: "Pause a sandbox",
        description: "Freezes a sandbox with its memory and processes kept. The next call that uses it wakes it.",
        scope: Scope::Manage,
        effect: Effect::Sets,
        is_open: false,
        input: || json!({"sandbox_id": sandbox_id()}),
        required: &["sandbox_id"],
        output: Some(sandbox_output),
        output_required: &SANDBOX_FIELDS,
        run: |call| Box::pin(pause(call)),
    },
    Tool {
        name: "sandbox_resume",
        title: "Resume a sandbox",
        description: "Makes a paused or stopped sandbox run again.",
        scope: Scope::Manage,
        effect: Effect::Sets,
        is_open: false,
        input: || json!({"sandbox_id": sandbox_id()}),
        required: &["sandbox_id"],
        output: Some(sandbox_output),
        output_required: &SANDBOX_FIELDS,
        run: |call| Box::pin(resume(call)),
    },
    Tool {
        name: "sandbox_set_timeout",
        title: "Set a sandbox's time",
        description: "Sets how many seconds a sandbox lives without being used, from now on, and what happens then.",
        scope: Scope::Manage,
        effect: Effect::Sets,
        is_open: false,
        input: || {
            json!({
                "sandbox_id": sandbox_id(),
                "timeout": {"type": "integer", "minimum": 1, "maximum": bounds::MAX_SECONDS, "description": "Seconds"},
                "action": {"enum": ["pause", "delete"], "description": "What happens then; as before if left out"},
            })
        },
        required: &["sandbox_id", "timeout"],
        output: Some(
            || json!({"message": {"type": "string"}, "expires_at": {"type": ["string", "null"]}}),
        ),
        output_required: &["message"],
        run: |call| Box::pin(timeout(call)),
    },
    Tool {
        name: "sandbox_delete",
        title: "Delete a sandbox",
        description: "Removes a sandbox with all its files and processes, for good.",
        scope: Scope::Manage,
        effect: Effect::Removes,
        is_open: false,
        input: || json!({"sandbox_id": sandbox_id()}),
        required: &["sandbox_id"],
        output: Some(|| json!({"message": {"type": "string"}})),
        output_required: &["message"],
        run: |call| Box::pin(delete(call)),
    },
];

/// Names a sandbox and nothing else.
#[derive(Deserialize)]
struct SandboxArgument {
    sandbox_id: String,
}

/// Fields of a sandbox that is created, paused or resumed.
const SANDBOX_FIELDS: [&str; 5] = ["sandbox_id", "status", "mcp_url", "vscode_url", "message"];

fn sandbox_output() -> Value {
    json!({
        "sandbox_id": {"type": "string"},
        "status": {"type": "string"},
        "mcp_url": {"type": "string", "description": "Where its own tools are, over MCP"},
        "vscode_url": {"type": "string"},
        "message": {"type": "string"},
    })
}

async fn create_sandbox(mut call: ToolCall) -> ApiResult<Outcome> {
    call.rename("memory", "memory_limit");
    call.rename("cpu", "cpu_limit");
    call.rename("disk", "disk_limit");
    call.rename("pids", "pids_limit");
    let request = call.read()?;
    let key = IdempotencyKey::default();
    let reply = create::create_sandbox(&call, key, request).await?;
    Ok(Outcome::of(&reply))
}

async fn pause(mut call: ToolCall) -> ApiResult<Outcome> {
    let SandboxArgument { sandbox_id } = call.read()?;
    let name = sandbox_name(&sandbox_id)?;
    let sandbox = call.service().pause(&call.caller, name, None).await?;
    Ok(Outcome::of(&SandboxReply::new(
        &sandbox,
        &call,
        "Sandbox paused",
    )))
}

async fn resume(mut call: ToolCall) -> ApiResult<Outcome> {
    let SandboxArgument { sandbox_id } = call.read()?;
    let name = sandbox_name(&sandbox_id)?;
    let sandbox = call.service().resume(&call.caller, name).await?;
    Ok(Outcome::of(&SandboxReply::new(
        &sandbox,
        &call,
        "Sandbox resumed",
    )))
}

async fn timeout(mut call: ToolCall) -> ApiResult<Outcome> {
    let request = call.read()?;
    let reply = set_timeout::set_timeout(&call, request).await?;
    Ok(Outcome::of(&reply))
}

async fn delete(mut call: ToolCall) -> ApiResult<Outcome> {
    let SandboxArgument { sandbox_id } = call.read()?;
    let service = call.service();
    let sandbox = service
        .delete(&call.caller, sandbox_name(&sandbox_id)?)
        .await?;
    Ok(Outcome::of(&Done::new(format!(
        "Sandbox {} deleted",
        sandbox.id
    ))))
}
