//! Templates and sandboxes made from a sandbox.

use axum::extract::State;
use futures_util::FutureExt;
use sandyard_core::Scope;
use serde_json::{Value, json};

use crate::bounds;
use crate::error::ApiError;
use crate::extract::{Body, OptionalBody, SandboxName, sandbox_name};
use crate::mcp::outcome::Outcome;
use crate::mcp::tool::{Call, Effect, Tool, result, sandbox_id, schema};
use crate::native::copies;
use crate::need::Who;

pub(super) const TOOLS: [Tool; 2] = [
    Tool {
        name: "sandbox_snapshot",
        title: "Keep a sandbox as a template",
        description: "Keeps a sandbox's files as a template that others can start from.",
        scope: Scope::Manage,
        effect: Effect::Adds,
        is_open: false,
        input: snapshot_input,
        output: Some(snapshot_output),
        run: |call| snapshot(call).boxed(),
    },
    Tool {
        name: "sandbox_fork",
        title: "Copy a sandbox",
        description: "Makes another sandbox from the files of one as they are now, to try something without touching the first.",
        scope: Scope::Manage,
        effect: Effect::Adds,
        is_open: false,
        input: fork_input,
        output: Some(fork_output),
        run: |call| fork(call).boxed(),
    },
];

fn snapshot_input() -> Value {
    schema(
        json!({
            "sandbox_id": sandbox_id(),
            "name": {"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,62}$", "description": "What the template shall be called"},
        }),
        &["sandbox_id", "name"],
    )
}

fn snapshot_output() -> Value {
    result(
        json!({"name": {"type": "string"}, "provider": {"type": "string"}}),
        &["name", "provider"],
    )
}

fn fork_input() -> Value {
    schema(
        json!({
            "sandbox_id": sandbox_id(),
            "timeout": {"type": "integer", "minimum": 1, "maximum": bounds::MAX_SECONDS, "description": "Seconds the copy lives without being used"},
        }),
        &["sandbox_id"],
    )
}

fn fork_output() -> Value {
    result(
        json!({"sandbox_id": {"type": "string"}, "status": {"type": "string"}}),
        &["sandbox_id", "status"],
    )
}

/// The sandbox a call is about.
fn name_of(call: &mut Call) -> Result<SandboxName, ApiError> {
    let named = call.arguments.remove("sandbox_id");
    let id = named.as_ref().and_then(Value::as_str).unwrap_or_default();
    Ok(SandboxName {
        id: sandbox_name(id)?.to_owned(),
    })
}

async fn snapshot(mut call: Call) -> Result<Outcome, ApiError> {
    let name = name_of(&mut call)?;
    let request = Body(call.read()?);
    let made = copies::snapshot_sandbox(State(call.app), Who(call.caller), name, request).await?;
    Ok(Outcome::of(&made.0))
}

async fn fork(mut call: Call) -> Result<Outcome, ApiError> {
    let name = name_of(&mut call)?;
    let request = OptionalBody(Some(call.read()?));
    let made = copies::fork_sandbox(State(call.app), Who(call.caller), call.links, name, request);
    Ok(Outcome::of(&made.await?.0))
}
