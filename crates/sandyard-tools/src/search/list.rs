//! `LS`: the content of a folder.

use std::fs::{self, DirEntry};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::search_tool;
use crate::call::Call;
use crate::files::blocking::{Bounds, blocking};
use crate::files::open::failed;
use crate::reply::{Answer, Problem, Reply, Result};
use crate::tool::Tool;
use crate::tool_state::ToolState;
use crate::workspace::Workspace;

/// Maximum number of entries in a reply.
const MAX_SHOWN: usize = 1_000;
/// Maximum number of entries to read and sort.
const MAX_SEEN: usize = 100_000;
/// Maximum number of entries of a subfolder.
const MAX_INNER: usize = 100;
/// Time limit.
const TIME_LIMIT: Duration = Duration::from_secs(20);

#[derive(Deserialize, JsonSchema)]
struct ListArguments {
    /// Path of the folder, absolute or relative to the workspace (default: the workspace).
    path: Option<String>,
}

/// The structured result.
#[derive(Debug, Serialize, JsonSchema)]
struct ListResult {
    /// Path of the folder.
    path: String,
    /// Entries, folders first.
    entries: Vec<Entry>,
    /// Number of entries of the folder.
    total: usize,
    /// Whether there are more entries.
    truncated: bool,
    /// Why, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// An entry of a folder.
#[derive(Debug, Serialize, JsonSchema)]
struct Entry {
    /// Name of the entry.
    name: String,
    /// `folder`, `file`, `link`, `pipe or socket` or `other`.
    kind: &'static str,
    /// Size of a file, in bytes.
    size: Option<u64>,
    /// Target of a link.
    target: Option<String>,
}

/// The tool.
pub(super) fn list_tool() -> Tool {
    search_tool("LS", TIME_LIMIT, list)
        .title("List a folder")
        .description("List a folder, including hidden and ignored files: folders first (with a trailing /), then files with their size in bytes and \
         links with their target. At most 1,000 entries.")
        .with_output::<ListResult>()
}

fn list(workspace: &Workspace, arguments: ListArguments, bounds: &Bounds) -> Answer {
    let path = arguments.path.filter(|path| !path.is_empty());
    let path = workspace.resolve(path.as_deref().unwrap_or("."))?;
    let (mut entries, mut total) = entries(&path, bounds)?;
    let truncated = entries.len() > MAX_SHOWN || total > entries.len();
    total = total.max(entries.len());
    entries.truncate(MAX_SHOWN);
    let name = workspace.display(&path);
    let mut text = format!("{name}:\n");
    for entry in &entries {
        text.push_str(&entry.line());
    }
    if entries.is_empty() {
        text.push_str("[the folder is empty]\n");
    }
    let mut note = String::new();
    if truncated {
        note = format!(
            "[truncated: {} of {total} entries are shown; find others with Glob]\n",
            entries.len()
        );
    }
    text.push_str(&note);
    Ok(Reply::text(text).with_structured(ListResult {
        path: name,
        entries,
        total,
        truncated,
        note: super::note(&note),
    }))
}

/// Lists a folder and its subfolders, without hidden entries.
pub(crate) async fn two_levels(tool_state: &ToolState, path: PathBuf, call: &Call) -> Answer {
    let workspace = tool_state.workspace.clone();
    let bounds = Bounds::new(&call.cancelled, TIME_LIMIT);
    blocking(move || {
        let mut text = format!("{}:\n", workspace.display(&path));
        let mut entry_count = 0;
        for entry in visible(&path, &bounds)?.iter().take(MAX_SHOWN) {
            text.push_str(&entry.line());
            entry_count += 1;
            if entry.kind != "folder" || entry_count > MAX_SHOWN {
                continue;
            }
            // Skip subfolders that cannot be read.
            let inner = visible(&path.join(&entry.name), &bounds).unwrap_or_default();
            for below in inner.iter().take(MAX_INNER) {
                text.push_str(&format!("  {}", below.line()));
                entry_count += 1;
            }
            if inner.len() > MAX_INNER {
                text.push_str(&format!("  [and {} more]\n", inner.len() - MAX_INNER));
            }
        }
        if entry_count >= MAX_SHOWN {
            text.push_str("[truncated: list subfolders with LS]\n");
        }
        Ok(Reply::text(text))
    })
    .await
}

fn visible(path: &Path, bounds: &Bounds) -> Result<Vec<Entry>> {
    let (mut entries, _) = entries(path, bounds)?;
    entries.retain(|entry| !entry.name.starts_with('.'));
    Ok(entries)
}

/// The entries of a folder, folders first, and their number.
fn entries(path: &Path, bounds: &Bounds) -> Result<(Vec<Entry>, usize)> {
    let metadata = path
        .symlink_metadata()
        .map_err(|error| failed(path, "listed", &error))?;
    if !metadata.is_dir() {
        return Err(Problem::new(format!(
            "{} is not a folder: read files with Read",
            path.display()
        )));
    }
    let folder = fs::read_dir(path).map_err(|error| failed(path, "listed", &error))?;
    let mut entries = Vec::new();
    let mut total = 0;
    for entry in folder.filter_map(Result::ok) {
        total += 1;
        if entries.len() < MAX_SEEN && !bounds.are_over() {
            entries.push(Entry::of(&entry));
        }
    }
    entries.sort_by(|a, b| (a.kind != "folder", &a.name).cmp(&(b.kind != "folder", &b.name)));
    Ok((entries, total))
}

impl Entry {
    fn of(entry: &DirEntry) -> Self {
        let name = entry.file_name().to_string_lossy().into_owned();
        let mut item = Self {
            name,
            kind: "other",
            size: None,
            target: None,
        };
        let Ok(kind) = entry.file_type() else {
            return item;
        };
        if kind.is_dir() {
            item.kind = "folder";
        } else if kind.is_symlink() {
            item.kind = "link";
            let target = fs::read_link(entry.path()).ok();
            item.target = target.map(|target| target.to_string_lossy().into_owned());
        } else if kind.is_file() {
            item.kind = "file";
            item.size = entry.metadata().ok().map(|metadata| metadata.len());
        } else if kind.is_fifo() || kind.is_socket() {
            item.kind = "pipe or socket";
        }
        item
    }

    fn line(&self) -> String {
        let name = super::one_line(&self.name, 255);
        match (self.kind, self.size, &self.target) {
            ("folder", ..) => format!("{name}/\n"),
            (_, Some(size), _) => format!("{name} ({size})\n"),
            (_, _, Some(target)) => format!("{name} -> {}\n", super::one_line(target, 500)),
            (kind, ..) => format!("{name} [{kind}]\n"),
        }
    }
}
