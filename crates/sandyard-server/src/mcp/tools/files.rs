//! Files of a sandbox.

use sandyard_agent_client::AgentClient;
use sandyard_agent_client::wire::filesystem::{EntryInfo, FileType};
use sandyard_core::Scope;
use serde_json::{Value, json};

use crate::actions::write_file;
use crate::mcp::outcome::Outcome;
use crate::mcp::piece::{LineRange, NotText, Piece};
use crate::mcp::tool::{Effect, Tool, ToolCall, sandbox_id};
use crate::prelude::*;

/// Largest file that is read at all.
const MAX_FILE: u64 = 32 << 20;
/// Most entries of a folder that are told.
const MAX_ENTRIES: usize = 1000;

pub(super) const TOOLS: [Tool; 3] = [
    Tool {
        name: "read_file",
        title: "Read a file",
        description: "Reads a text file of a sandbox, at most 256 KiB at once: `truncated` says that there is more, and `offset` \
                      goes on from a line.",
        scope: Scope::Use,
        effect: Effect::Reads,
        is_open: false,
        input: || {
            json!({
                "sandbox_id": sandbox_id(),
                "path": path(),
                "offset": {"type": "integer", "minimum": 1, "description": "The first line to read; 1 if left out"},
                "limit": {"type": "integer", "minimum": 1, "description": "Maximum number of lines (default: all)"},
            })
        },
        required: &["sandbox_id", "path"],
        output: Some(|| {
            json!({
                "content": {"type": "string"},
                "lines": {"type": "integer", "description": "How many lines the file has"},
                "truncated": {"type": "boolean", "description": "Whether there is more after this"},
                "next_offset": {"type": "integer", "description": "The line to go on from, if there is more"},
            })
        }),
        output_required: &["content", "lines", "truncated"],
        run: |call| Box::pin(read(call)),
    },
    Tool {
        name: "write_file",
        title: "Write a file",
        description: "Writes a text file of a sandbox, with the folders above it. What was there is replaced.",
        scope: Scope::Use,
        effect: Effect::Removes,
        is_open: false,
        input: || {
            json!({
                "sandbox_id": sandbox_id(),
                "path": path(),
                "content": {"type": "string", "description": "All of it"},
            })
        },
        required: &["sandbox_id", "path", "content"],
        output: Some(|| json!({"message": {"type": "string"}})),
        output_required: &["message"],
        run: |call| Box::pin(write(call)),
    },
    Tool {
        name: "list_files",
        title: "List a folder",
        description: "Lists a folder of a sandbox.",
        scope: Scope::Use,
        effect: Effect::Reads,
        is_open: false,
        input: || {
            json!({
                "sandbox_id": sandbox_id(),
                "path": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "The folder; the user's home if left out"},
                "depth": {"type": "integer", "minimum": 1, "maximum": 8, "description": "Levels below it; 1 if left out"},
            })
        },
        required: &["sandbox_id"],
        output: Some(|| {
            json!({
                "entries": {"type": "array", "items": {"type": "object"}},
                "truncated": {"type": "boolean", "description": "Whether there are more than are listed"},
            })
        }),
        output_required: &["entries", "truncated"],
        run: |call| Box::pin(list(call)),
    },
];

fn path() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": 4096, "description": "Where; relative paths begin at the user's home"})
}

#[derive(Deserialize)]
struct Read {
    sandbox_id: String,
    path: String,
    offset: Option<BoundedInt<1, 1_000_000_000>>,
    limit: Option<BoundedInt<1, 1_000_000_000>>,
}

async fn read(mut call: ToolCall) -> ApiResult<Outcome> {
    let asked: Read = call.read()?;
    let name = sandbox_name(&asked.sandbox_id)?;
    bounds::path("path", &asked.path)?;
    let live = call.live(name).await?;
    let first = asked.offset.map_or(1, |line| line.0 as usize);
    let max_lines = asked.limit.map_or(usize::MAX, |lines| lines.0 as usize);
    let piece = take(&live.agent, &asked.path, Piece::new(first, max_lines)).await?;
    let mut value = json!({
        "content": piece.text, "lines": piece.lines, "truncated": piece.is_cut,
    });
    let mut text = piece.text;
    if let Some(next) = piece.next {
        value["next_offset"] = next.into();
        text += &format!(
            "\n[cut: the file has {} lines; go on with offset {next}]",
            piece.lines
        );
    } else if piece.is_cut {
        text += "\n[cut: the line is too long; use `run_command` with cut or head -c for the rest]";
    }
    Ok(Outcome::with_text(value, text))
}

/// Goes through a file for a piece of it; all of it, since how many lines there are is told too.
async fn take(agent: &AgentClient, path: &str, mut piece: Piece) -> ApiResult<LineRange> {
    let too_large = || {
        let detail = format!("`{path}` is over {} MiB", MAX_FILE >> 20);
        ApiError::new(ErrorKind::TooLarge, detail)
            .hint("look at parts of it with `run_command`: head, tail, sed or grep")
    };
    let mut file = agent.read_file(path).await?;
    if file.size().is_some_and(|size| size > MAX_FILE) {
        return Err(too_large());
    }
    let mut size = 0;
    while let Some(bytes) = file.next().await {
        let bytes = bytes?;
        size += bytes.len() as u64;
        if size > MAX_FILE {
            return Err(too_large());
        }
        piece.push(&bytes);
    }
    piece.finish().map_err(|NotText| {
        ApiError::new(ErrorKind::NotText, format!("`{path}` is not UTF-8 text"))
            .hint("inspect it with `run_command`: file, xxd or strings")
    })
}

async fn write(mut call: ToolCall) -> ApiResult<Outcome> {
    let request = call.read()?;
    let done = write_file::write_file(&call, request).await?;
    Ok(Outcome::of(&done))
}

#[derive(Deserialize)]
struct List {
    sandbox_id: String,
    path: Option<String>,
    depth: Option<BoundedInt<1, 8>>,
}

async fn list(mut call: ToolCall) -> ApiResult<Outcome> {
    let asked: List = call.read()?;
    let name = sandbox_name(&asked.sandbox_id)?;
    let path = asked.path.unwrap_or_else(|| ".".to_owned());
    bounds::path("path", &path)?;
    let depth = asked.depth.map_or(1, |depth| depth.0 as u32);
    let live = call.live(name).await?;
    let entries = live.agent.list_dir(&path, depth).await?;
    let is_cut = entries.len() > MAX_ENTRIES;
    let entries: Vec<Value> = entries
        .into_iter()
        .take(MAX_ENTRIES)
        .map(entry_json)
        .collect();
    Ok(Outcome::of(
        &json!({"entries": entries, "truncated": is_cut}),
    ))
}

fn entry_json(info: EntryInfo) -> Value {
    let kind = match info.r#type {
        _ if info.symlink_target.is_some() => "symlink",
        FileType::Directory => "directory",
        FileType::Symlink => "symlink",
        _ => "file",
    };
    json!({"path": info.path, "type": kind, "size": info.size, "permissions": info.permissions})
}
