//! `Glob`: paths that match a pattern.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use ignore::WalkState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::grep::start;
use super::search_tool;
use super::walk::{End, Walk, pattern};
use crate::files::blocking::Bounds;
use crate::reply::{Answer, Problem, Reply, Result};
use crate::tool::Tool;
use crate::workspace::Workspace;

/// Maximum number of files in a reply.
const MAX_FILES: usize = 200;
/// Time limit of a search.
const TIME_LIMIT: Duration = Duration::from_secs(30);

#[derive(Deserialize, JsonSchema)]
struct GlobArguments {
    /// Pattern for paths relative to the folder: "*.md" matches files in it, "**/*.rs" matches files at any depth.
    pattern: String,
    /// Folder to search, absolute or relative to the workspace (default: the workspace).
    path: Option<String>,
}

/// The structured result.
#[derive(Debug, Serialize, JsonSchema)]
struct GlobResult {
    /// Paths of the files, most recently modified first.
    files: Vec<String>,
    /// Number of matching files.
    total: usize,
    /// Whether there may be more files.
    truncated: bool,
    /// Why, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// The tool.
pub(super) fn glob_tool() -> Tool {
    search_tool("Glob", TIME_LIMIT, glob)
        .title("Find files by name")
        .description("Find files whose path matches a pattern (*, **, ?, [a-z], {a,b}). Returns at most 200 paths, most recently modified first. Skips \
         git-ignored files, and hidden files unless the pattern names them; LS lists everything.")
        .with_output::<GlobResult>()
}

fn glob(workspace: &Workspace, arguments: GlobArguments, bounds: &Bounds) -> Answer {
    let (folder, rest) = split(&arguments)?;
    let root = start(workspace, Some(&folder))?;
    if !root.is_dir() {
        return Err(Problem::new(format!(
            "{folder} is not a folder: give the folder to search as path"
        )));
    }
    let matcher = pattern(&rest)?;
    let with_hidden = rest.split('/').any(|part| part.starts_with('.'));
    let walk = Walk::new(root.clone()).with_hidden(with_hidden);
    // The newest files so far. The oldest of them is dropped when there are too many.
    let mut newest: BinaryHeap<Reverse<(SystemTime, Reverse<PathBuf>)>> = BinaryHeap::new();
    let mut total = 0;
    let end = walk.visit(bounds, |path| {
        let below = path.strip_prefix(&root).unwrap_or(path);
        if matcher.is_match(below) {
            total += 1;
            newest.push(Reverse((modified(path), Reverse(path.to_owned()))));
            if newest.len() > MAX_FILES {
                newest.pop();
            }
        }
        WalkState::Continue
    });
    let files: Vec<_> = newest
        .into_sorted_vec()
        .into_iter()
        .map(|Reverse((_, Reverse(path)))| workspace.display(&path))
        .collect();
    Ok(reply(files, total, end, &arguments.pattern))
}

/// Splits an absolute pattern into its folder and the rest.
fn split(arguments: &GlobArguments) -> Result<(String, String)> {
    let path = Path::new(&arguments.pattern);
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(Problem::new(
            "the pattern contains ..: give the folder to search as path instead",
        ));
    }
    if path.is_relative() {
        let folder = arguments.path.clone().filter(|path| !path.is_empty());
        let pattern = arguments.pattern.trim_start_matches("./").to_owned();
        return Ok((folder.unwrap_or_else(|| ".".to_owned()), pattern));
    }
    let parts: Vec<_> = arguments.pattern.split('/').collect();
    let plain = parts
        .iter()
        .take_while(|part| !part.contains(['*', '?', '[', '{', '\\']))
        .count();
    // The last part is a file name, even if it has no wildcard.
    let plain = plain.min(parts.len() - 1);
    let folder = parts[..plain].join("/");
    let folder = if folder.is_empty() {
        "/".to_owned()
    } else {
        folder
    };
    Ok((folder, parts[plain..].join("/")))
}

fn modified(path: &Path) -> SystemTime {
    let metadata = path.symlink_metadata();
    metadata
        .and_then(|metadata| metadata.modified())
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

fn reply(files: Vec<String>, total: usize, end: End, pattern: &str) -> Reply {
    let mut text = files.join("\n");
    if files.is_empty() {
        text = format!("no file matches {pattern}; use \"**/NAME\" for any depth");
    }
    let truncated = total > files.len() || end != End::Complete;
    let mut note = String::new();
    if total > files.len() {
        note = format!(
            "\n[truncated: the {} newest of {total} files are shown; use a narrower pattern]",
            files.len()
        );
    }
    if end == End::TimedOut {
        note.push_str("\n[incomplete: the time limit was reached; search a smaller folder]");
    }
    text.push_str(&note);
    let result = GlobResult {
        files,
        total,
        truncated,
        note: super::note(&note),
    };
    Reply::text(text).with_structured(result)
}
