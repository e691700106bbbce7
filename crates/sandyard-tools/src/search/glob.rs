//! Names that match: `Glob`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use ignore::WalkState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::grep::start;
use super::walk::{End, Walk, pattern};
use crate::files::blocking::{Bounds, blocking};
use crate::reply::{Answer, Problem, Reply};
use crate::tool::{Effect, Tool, tool};
use crate::workspace::Workspace;

/// So many files are shown.
const MAX_FILES: usize = 200;
/// How long a search may take.
const TIME: Duration = Duration::from_secs(30);

#[derive(Deserialize, JsonSchema)]
struct GlobArguments {
    /// The pattern, matched against paths from the folder on: "*.md" for files right in it, "**/*.rs" for those at any depth.
    pattern: String,
    /// The folder to look in; the workspace if left out.
    #[serde(default)]
    path: Option<String>,
}

/// What was found, for programs.
#[derive(Debug, Serialize, JsonSchema)]
struct GlobResult {
    /// The files, newest first.
    files: Vec<String>,
    /// How many match.
    total: usize,
    /// There are more than are shown, or not everything was looked at.
    truncated: bool,
    /// Which of these, and what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// The tool.
pub(super) fn glob_tool() -> Tool {
    tool::<GlobArguments, _, _>(
        "Glob",
        "Find files by name",
        Effect::Looks,
        "Finds files whose path matches a pattern (*, **, ?, [a-z], {a,b}), the most recently changed first, 200 at most. \
         Hidden files (unless the pattern names them) and what .gitignore leaves out are not found; LS shows everything.",
        |workshop, arguments, call| async move {
            let workspace = workshop.workspace.clone();
            let bounds = Bounds::new(&call.cancelled, TIME);
            blocking(move || glob(&workspace, &arguments, &bounds)).await
        },
    )
    .answers::<GlobResult>()
}

fn glob(workspace: &Workspace, arguments: &GlobArguments, bounds: &Bounds) -> Answer {
    let (folder, rest) = split(arguments)?;
    let root = start(workspace, Some(&folder))?;
    if !root.is_dir() {
        return Err(Problem::new(format!(
            "{folder} is no folder: give the folder to look in as path"
        )));
    }
    let matcher = pattern(&rest)?;
    let with_hidden = rest.split('/').any(|part| part.starts_with('.'));
    let walk = Walk::new(root.clone()).with_hidden(with_hidden);
    // The newest so far; the oldest of them goes first when there are too many.
    let mut newest: BinaryHeap<Reverse<(SystemTime, Reverse<PathBuf>)>> = BinaryHeap::new();
    let mut total = 0;
    let end = walk.visit(bounds, |path| {
        let below = path.strip_prefix(&root).unwrap_or(path);
        if matcher.is_match(below) {
            total += 1;
            newest.push(Reverse((changed(path), Reverse(path.to_owned()))));
            if newest.len() > MAX_FILES {
                newest.pop();
            }
        }
        WalkState::Continue
    });
    let files: Vec<_> = newest
        .into_sorted_vec()
        .into_iter()
        .map(|Reverse((_, Reverse(path)))| workspace.shown(&path))
        .collect();
    Ok(reply(files, total, end, &arguments.pattern))
}

/// The folder a pattern begins in, and the rest of it.
fn split(arguments: &GlobArguments) -> Result<(String, String), Problem> {
    let path = Path::new(&arguments.pattern);
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(Problem::new(
            "the pattern has .. in it: give the folder to look in as path instead",
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
    // The last part is a name to be matched, even if it has no sign of a pattern.
    let plain = plain.min(parts.len() - 1);
    let folder = parts[..plain].join("/");
    let folder = if folder.is_empty() {
        "/".to_owned()
    } else {
        folder
    };
    Ok((folder, parts[plain..].join("/")))
}

fn changed(path: &Path) -> SystemTime {
    let metadata = path.symlink_metadata();
    metadata
        .and_then(|metadata| metadata.modified())
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

fn reply(files: Vec<String>, total: usize, end: End, pattern: &str) -> Reply {
    let mut text = files.join("\n");
    if files.is_empty() {
        text = format!("no file matches {pattern}; at any depth it would be \"**/NAME\"");
    }
    let truncated = total > files.len() || end != End::Whole;
    let mut note = String::new();
    if total > files.len() {
        note = format!(
            "\n[cut: the {} newest of {total} files are shown; use a narrower pattern]",
            files.len()
        );
    }
    if end == End::Late {
        note.push_str(
            "\n[not everything was looked at, the time was up: look in a smaller folder]",
        );
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
