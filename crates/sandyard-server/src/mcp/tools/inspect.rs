//! Tools that read: the list of sandboxes, details of a sandbox, its logs, the list of templates.

use sandyard_core::Scope;
use sandyard_service::{LogEntry, SandboxFilter};
use serde_json::{Value, json};

use crate::mcp::outcome::Outcome;
use crate::mcp::tool::{Effect, Tool, ToolCall, sandbox_id};
use crate::model::sandbox::{SandboxInfo, Status};
use crate::model::template::TemplateList;
use crate::prelude::*;

/// Default number of lines of a log.
const LINES: usize = 100;
/// Most bytes of a log.
const MAX_LOG: usize = 64 << 10;

pub(super) const TOOLS: [Tool; 4] = [
    Tool {
        name: "sandbox_list",
        title: "List sandboxes",
        description: "Lists your sandboxes, newest first.",
        scope: Scope::Read,
        effect: Effect::Reads,
        is_open: false,
        input: || {
            json!({
                "status": {"enum": ["initializing", "running", "paused", "error", "deleted"], "description": "Only sandboxes with this status (default: all but deleted)"},
                "metadata": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 16, "description": "Only sandboxes with this metadata"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 200, "description": "Maximum number of sandboxes (default 50)"},
                "cursor": {"type": "string", "maxLength": 64, "description": "The `next` of the previous page"},
            })
        },
        required: &[],
        output: Some(|| {
            json!({
                "sandboxes": {"type": "array", "items": {"type": "object"}},
                "next": {"type": ["string", "null"], "description": "The cursor of the next page; null: that was all"},
            })
        }),
        output_required: &["sandboxes"],
        run: |call| Box::pin(list(call)),
    },
    Tool {
        name: "sandbox_info",
        title: "Show a sandbox",
        description: "Tells all there is to know about a sandbox: status, template, limits, network, when its time is over, and the \
                      URLs of its own tools and of VS Code.",
        scope: Scope::Read,
        effect: Effect::Reads,
        is_open: false,
        input: || json!({"sandbox_id": sandbox_id()}),
        required: &["sandbox_id"],
        output: Some(|| {
            json!({
                "sandbox_id": {"type": "string"},
                "status": {"type": "string"},
                "template": {"type": "string"},
                "mcp_url": {"type": "string"},
                "vscode_url": {"type": "string"},
            })
        }),
        output_required: &["sandbox_id", "status", "template", "mcp_url", "vscode_url"],
        run: |call| Box::pin(info(call)),
    },
    Tool {
        name: "sandbox_logs",
        title: "Show a sandbox's log",
        description: "Tells the newest lines that commands of a sandbox wrote, those in the background too.",
        scope: Scope::Read,
        effect: Effect::Reads,
        is_open: false,
        input: || {
            json!({
                "sandbox_id": sandbox_id(),
                "lines": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "Maximum number of lines (default 100)"},
            })
        },
        required: &["sandbox_id"],
        output: Some(|| {
            json!({
                "logs": {"type": "array", "items": {"type": "object"}, "description": "Oldest first"},
                "truncated": {"type": "boolean", "description": "Whether older ones were left out to keep this short"},
            })
        }),
        output_required: &["logs", "truncated"],
        run: |call| Box::pin(logs(call)),
    },
    Tool {
        name: "template_list",
        title: "List templates",
        description: "Lists what sandboxes can start from.",
        scope: Scope::Read,
        effect: Effect::Reads,
        is_open: false,
        input: || json!({}),
        required: &[],
        output: Some(|| json!({"templates": {"type": "array", "items": {"type": "object"}}})),
        output_required: &["templates"],
        run: |call| Box::pin(list_templates(call)),
    },
];

#[derive(Deserialize)]
struct List {
    status: Option<Status>,
    metadata: Option<std::collections::BTreeMap<String, String>>,
    limit: Option<BoundedInt<1, 200>>,
    cursor: Option<String>,
}

async fn list(mut call: ToolCall) -> ApiResult<Outcome> {
    let asked: List = call.read()?;
    bounds::optional_text("cursor", asked.cursor.as_deref(), 1, 256)?;
    let filter = SandboxFilter {
        statuses: asked.status.map(Status::statuses).unwrap_or_default(),
        metadata: bounds::metadata_filters(asked.metadata.unwrap_or_default())?,
        cursor: asked.cursor,
        limit: asked.limit.map_or(50, |limit| limit.0 as usize),
        ..SandboxFilter::default()
    };
    let service = call.service();
    let page = service.list(&call.caller, filter).await?;
    let brief = |sandbox| brief(SandboxInfo::new(&call, sandbox));
    let sandboxes: Vec<Value> = page.items.into_iter().map(brief).collect();
    Ok(Outcome::of(
        &json!({"sandboxes": sandboxes, "next": page.next}),
    ))
}

/// What a list tells of a sandbox: enough to choose one.
fn brief(info: SandboxInfo) -> Value {
    let all = serde_json::to_value(info).unwrap_or_default();
    let names = [
        "sandbox_id",
        "alias",
        "status",
        "reason",
        "template",
        "metadata",
        "created_at",
        "expires_at",
    ];
    let pairs = names
        .into_iter()
        .map(|name| (name.to_owned(), all[name].clone()));
    Value::Object(pairs.filter(|(_, value)| !value.is_null()).collect())
}

async fn info(mut call: ToolCall) -> ApiResult<Outcome> {
    let arguments: Value = call.read()?;
    let name = sandbox_name(arguments["sandbox_id"].as_str().unwrap_or_default())?;
    let sandbox = call.inspect(name).await?;
    Ok(Outcome::of(&SandboxInfo::new(&call, sandbox)))
}

#[derive(Deserialize)]
struct Logs {
    sandbox_id: String,
    lines: Option<BoundedInt<1, 1000>>,
}

async fn logs(mut call: ToolCall) -> ApiResult<Outcome> {
    let asked: Logs = call.read()?;
    let name = sandbox_name(&asked.sandbox_id)?;
    let lines = asked.lines.map_or(LINES, |lines| lines.0 as usize);
    let logs = call.service().logs(&call.caller, name, lines).await?;
    let logs = logs.entries;
    let all = logs.len();
    let lines = newest(logs);
    Ok(Outcome::of(
        &json!({"truncated": lines.len() < all, "logs": lines}),
    ))
}

/// The newest lines that are not too long together.
fn newest(logs: Vec<LogEntry>) -> Vec<LogEntry> {
    let mut free_bytes = MAX_LOG;
    let mut lines: Vec<_> = logs
        .into_iter()
        .rev()
        .take_while(|line| {
            let is_kept = line.text.len() <= free_bytes;
            free_bytes = free_bytes.saturating_sub(line.text.len());
            is_kept
        })
        .collect();
    lines.reverse();
    lines
}

async fn list_templates(call: ToolCall) -> ApiResult<Outcome> {
    let list = call.service().templates(&call.caller).await?;
    Ok(Outcome::of(&TemplateList::from(list)))
}
