//! Tools of a sandbox's own tool server, for clients that have this one connection.

use std::pin::pin;
use std::time::Duration;

use rmcp::model::ContentBlock;
use sandyard_core::Scope;
use serde_json::{Map, Value, json};
use tokio::time::{sleep, timeout};

use crate::mcp::outcome::Outcome;
use crate::mcp::tool::{Effect, Progress, Tool, ToolCall, sandbox_id, schema};
use crate::prelude::*;
use crate::tool_server::{ProgressReceiver, ToolServer, progress_channel};

/// Time for the list of tools.
const LIST: Duration = Duration::from_secs(30);
/// How long a call may go on without a word: coding agents take their time, and tell how far they are.
const SILENCE: Duration = Duration::from_secs(3600);
/// How long it may go on in all.
const MAX_DURATION: Duration = Duration::from_secs(24 * 3600);
/// Longest name, text and arguments of a tool that are told.
const MAX_NAME: usize = 256;
const MAX_DESCRIPTION: usize = 4096;
const MAX_SCHEMA: usize = 100 << 10;
/// Most names to ask for.
const MAX_NAMES: usize = 100;

pub(super) const TOOLS: [Tool; 2] = [
    Tool {
        name: "sandbox_tools",
        title: "List a sandbox's own tools",
        description: "Lists the tools that a sandbox itself has, with their arguments: shell sessions, editors, search, browser, coding \
                      agents, and those of MCP servers added to it. Call one with `sandbox_call_tool`.",
        scope: Scope::Use,
        effect: Effect::Reads,
        is_open: false,
        input: || {
            json!({
                "sandbox_id": sandbox_id(),
                "names": {"type": "array", "items": {"type": "string"}, "maxItems": MAX_NAMES, "description": "Only these; all if left out"},
            })
        },
        required: &["sandbox_id"],
        output: Some(|| {
            let tool = schema(
                json!({
                    "name": {"type": "string"},
                    "description": {"type": "string"},
                    "inputSchema": {"type": "object"},
                }),
                &["name"],
            );
            json!({"tools": {"type": "array", "items": tool}})
        }),
        output_required: &["tools"],
        run: |call| Box::pin(list(call)),
    },
    Tool {
        name: "sandbox_call_tool",
        title: "Call a sandbox's own tool",
        description: "Calls one of the tools that `sandbox_tools` lists and answers what it answers.",
        scope: Scope::Use,
        effect: Effect::Destroys,
        is_open: true,
        input: || {
            json!({
                "sandbox_id": sandbox_id(),
                "tool": {"type": "string", "minLength": 1, "maxLength": MAX_NAME, "description": "Its name, as `sandbox_tools` tells it"},
                "arguments": {"type": "object", "description": "Its arguments"},
            })
        },
        required: &["sandbox_id", "tool"],
        output: None,
        output_required: &[],
        run: |call| Box::pin(call_tool(call)),
    },
];

#[derive(Deserialize)]
struct List {
    sandbox_id: String,
    names: Option<Vec<String>>,
}

async fn list(mut call: ToolCall) -> ApiResult<Outcome> {
    let asked: List = call.read()?;
    let name = sandbox_name(&asked.sandbox_id)?;
    let live = call.live(name).await?;
    let names: Option<Vec<String>> = asked
        .names
        .map(|names| names.into_iter().take(MAX_NAMES).collect());
    let port = call.app.settings().mcp_port;
    let tools = timeout(LIST, async {
        ToolServer::open(&live, port).await?.list().await
    })
    .await
    .map_err(|_| late())??;
    let is_wanted = |name: &str| {
        let is_asked = names
            .as_ref()
            .is_none_or(|names| names.iter().any(|it| it == name));
        is_asked && name.chars().count() <= MAX_NAME
    };
    let tools: Vec<Value> = tools
        .iter()
        .filter(|tool| tool["name"].as_str().is_some_and(is_wanted))
        .map(summarize)
        .collect();
    Ok(Outcome::of(&json!({"tools": tools})))
}

/// Name, description and input schema of a tool, without a schema that is too large.
fn summarize(tool: &Value) -> Value {
    let mut summary = json!({"name": tool["name"], "inputSchema": {"type": "object"}});
    if let Some(text) = tool["description"].as_str() {
        summary["description"] = text[..text.floor_char_boundary(MAX_DESCRIPTION)].into();
    }
    let input = &tool["inputSchema"];
    if input.is_object() && input.to_string().len() <= MAX_SCHEMA {
        summary["inputSchema"] = input.clone();
    }
    summary
}

#[derive(Deserialize)]
struct Relay {
    sandbox_id: String,
    tool: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

async fn call_tool(mut call: ToolCall) -> ApiResult<Outcome> {
    let asked: Relay = call.read()?;
    let name = sandbox_name(&asked.sandbox_id)?;
    bounds::text("tool", &asked.tool, 1, MAX_NAME)?;
    let live = call.live(name).await?;
    let port = call.app.settings().mcp_port;
    let ports = json!({"template": call.links.port_pattern(&live.sandbox.id)});
    let mut server = timeout(LIST, async {
        // For the tool that tells where a port is seen. It forgets it with every stop of the sandbox.
        let _ = ToolServer::new(&live, port).post("/port-url", &ports).await;
        ToolServer::open(&live, port).await
    })
    .await
    .map_err(|_| late())??;
    let (sender, reports) = progress_channel();
    // Received even if the client wants no reports: they show that the tool is working.
    let work = server.call(&asked.tool, asked.arguments, Some(&sender));
    relayed(forward_progress(work, reports, &mut call.progress).await?)
}

/// Waits for the answer, and forwards progress reports meanwhile.
async fn forward_progress(
    work: impl Future<Output = ApiResult<Value>>,
    mut reports: ProgressReceiver,
    progress: &mut Progress,
) -> ApiResult<Value> {
    let mut work = pin!(work);
    let mut end = pin!(sleep(MAX_DURATION));
    loop {
        let report = tokio::select! {
            biased;
            Some(report) = reports.recv() => report,
            answer = &mut work => return answer,
            () = sleep(SILENCE) => return Err(late()),
            () = &mut end => return Err(late()),
        };
        progress.forward(report).await;
    }
}

/// Reads what a tool answered. It is not believed to be well formed.
fn relayed(mut answer: Value) -> ApiResult<Outcome> {
    let mut take = |name: &str| answer.get_mut(name).map(Value::take).unwrap_or_default();
    let (content, value) = (take("content"), take("structuredContent"));
    let content: Vec<ContentBlock> = serde_json::from_value(content).map_err(|_| {
        let detail = "the sandbox's tool answered something that is no result";
        ApiError::new(ErrorKind::AgentFailed, detail)
    })?;
    let value = Some(value).filter(Value::is_object);
    let is_error = answer["isError"].as_bool().unwrap_or(false);
    Ok(Outcome::relayed(content, value, is_error))
}

fn late() -> ApiError {
    ApiError::new(
        ErrorKind::TimedOut,
        "the sandbox's tool server gives no answer",
    )
    .hint("try again, or start another sandbox")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_any_form_are_relayed_or_refused() {
        for answer in [
            json!([]),
            json!(5),
            json!("x"),
            json!({}),
            json!({"content": 7}),
        ] {
            assert!(relayed(answer).is_err());
        }
        let good = json!({"content": [{"type": "text", "text": "x"}], "structuredContent": 7});
        assert_eq!(relayed(good.clone()).ok().map(|it| it.status()), Some(200));
        let mut bad = good;
        bad["isError"] = true.into();
        assert_eq!(relayed(bad).ok().map(|it| it.status()), Some(422));
    }

    #[test]
    fn arguments_beyond_bounds_are_left_out() {
        let long = json!({"type": "object", "title": "x".repeat(MAX_SCHEMA)});
        let tool = summarize(&json!({"name": "a", "inputSchema": long}));
        assert_eq!(
            tool,
            json!({"name": "a", "inputSchema": {"type": "object"}})
        );
        let short = json!({"name": "a", "inputSchema": {"type": "object", "title": "x"}});
        assert_eq!(summarize(&short), short);
    }
}
