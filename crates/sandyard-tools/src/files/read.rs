//! Reading files: `Read` for models, `read_file` for programs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::blocking::{Bounds, blocking};
use super::kind::Kind;
use super::open::open;
use super::pdf;
use super::render::{Rendered, first_bytes, pdf_reply, read_up_to, render};
use crate::call::Call;
use crate::reply::{Answer, MAX_TEXT, Problem, Reply, Result};
use crate::tool::{Effect, Tool, tool, workspace_tool};
use crate::tool_state::ToolState;
use crate::workspace::Workspace;

/// Default number of lines.
const DEFAULT_LINES: u64 = 2_000;
/// Time limit.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Maximum size of a file for `read_file`, in bytes.
const MAX_SIZE: usize = MAX_TEXT - 1024;

const DESCRIPTION: &str = "Read a file. Returns text as numbered lines (number, tab, line, like `cat -n`), at most 2,000 lines or \
    30,000 characters; use offset to continue. Returns images (PNG, JPEG, GIF, WebP) as images and PDF documents as text. Use LS \
    for folders.";

#[derive(Deserialize, JsonSchema)]
struct ReadArguments {
    /// Path of the file, absolute or relative to the workspace.
    file_path: String,
    /// Maximum number of lines, or pages of a PDF (default 2,000).
    limit: Option<u64>,
    /// Number of the first line, or page of a PDF (default 1).
    offset: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
struct ShortArguments {
    /// Path of the file, absolute or relative to the workspace.
    #[serde(alias = "file_path")]
    path: String,
}

/// `Read`.
pub(super) fn read_tool() -> Tool {
    tool("Read", Effect::Reads, read_any)
        .title("Read a file")
        .description(DESCRIPTION)
}

/// `read_file`.
pub(super) fn short_tool() -> Tool {
    workspace_tool("read_file", Effect::Reads, read_text_file)
        .title("Read a text file verbatim")
        .description("Return the content of a text file without line numbers, up to 255 KiB. Use Read for parts of larger files, images and PDF \
         documents.")
}

async fn read_any(tool_state: Arc<ToolState>, arguments: ReadArguments, call: Call) -> Answer {
    let part = Part {
        first: arguments.offset.unwrap_or(1).max(1),
        limit: arguments.limit.unwrap_or(DEFAULT_LINES).max(1),
    };
    read(&tool_state, &arguments.file_path, part, &call).await
}

fn read_text_file(workspace: &Workspace, arguments: ShortArguments) -> Answer {
    read_text(&workspace.resolve(&arguments.path)?).map(Reply::text)
}

/// A range of lines or pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Number of the first one, starting with 1.
    pub(super) first: u64,
    /// Maximum number.
    pub(super) limit: u64,
}

/// Reads a part of a file of any kind.
pub(super) async fn read(tool_state: &ToolState, path: &str, part: Part, call: &Call) -> Answer {
    let path = tool_state.workspace.resolve(path)?;
    let workspace = tool_state.workspace.clone();
    let bounds = Bounds::new(&call.cancelled, TIME_LIMIT);
    let rendered = {
        let bounds = bounds.clone();
        blocking(move || render(&workspace, path, part, &bounds)).await?
    };
    match rendered {
        Rendered::Done(reply) => Ok(reply),
        Rendered::Pdf(bytes) => {
            let text = pdf::text(bytes, part, &bounds).await?;
            Ok(pdf_reply(part, text))
        }
    }
}

fn read_text(path: &Path) -> Result<String> {
    let (mut file, metadata) = open(path)?;
    if let Kind::Binary(what) = Kind::of(&first_bytes(path, &mut file)?) {
        return Err(Problem::new(format!(
            "{} is not text but {what}",
            path.display()
        )));
    }
    let bytes = read_up_to(path, file, MAX_SIZE, || {
        format!(
            "{} has {} bytes, the maximum is {MAX_SIZE}: read parts of it with Read",
            path.display(),
            metadata.len()
        )
    })?;
    String::from_utf8(bytes).map_err(|_| {
        Problem::new(format!(
            "{} is not UTF-8 text: use Read, which replaces invalid bytes",
            path.display()
        ))
    })
}
