//! `apply_patch`: patches in the format that starts with `*** Begin Patch`.

mod locate;
mod parse;
mod plan;

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use super::change::lock_changes;
use super::diff::diff;
use crate::reply::{Answer, Problem, Reply, Result};
use crate::tool::{Effect, Tool, workspace_tool};
use crate::workspace::Workspace;

/// Maximum length of the diffs of a patch, in bytes.
const MAX_DIFFS: usize = 20_000;

const DESCRIPTION: &str = "Change several files with a patch. Either the whole patch is applied, or nothing. Format:\n\
    *** Begin Patch\n\
    *** Add File: PATH (followed by all lines of the file, each with a leading +)\n\
    *** Delete File: PATH\n\
    *** Update File: PATH (optionally followed by *** Move to: NEW_PATH, then the changes)\n\
    @@ a line above the change (optional, if the position is ambiguous)\n \
    an unchanged line (with a leading space)\n\
    -a line to remove\n\
    +a line to add\n\
    *** End of File (after a change at the end of the file)\n\
    *** End Patch\n\
    Include about three unchanged lines before and after each change.";

#[derive(Deserialize, JsonSchema)]
struct PatchArguments {
    /// The complete patch, from "*** Begin Patch" to "*** End Patch".
    input: String,
}

/// The tool.
pub(super) fn patch_tool() -> Tool {
    workspace_tool("apply_patch", Effect::Changes, patch)
        .title("Apply a patch")
        .description(DESCRIPTION)
}

fn patch(workspace: &Workspace, PatchArguments { input }: PatchArguments) -> Answer {
    let changed = apply(&input, |path| workspace.resolve_file(path))?;
    Ok(Reply::text(summary(workspace, &changed)))
}

/// A file that a patch changed.
#[derive(Debug)]
pub(crate) struct Changed {
    /// Its path.
    pub(crate) path: PathBuf,
    /// The text before; none if the file did not exist, or was removed without being read.
    pub(crate) before: Option<String>,
    /// The text after; none if the file was removed.
    pub(crate) after: Option<String>,
}

/// Applies a patch whose paths are relative to a folder and must stay below it.
pub(crate) fn apply_patch_below(
    workspace: &Workspace,
    root: &Path,
    input: &str,
) -> Result<Vec<Changed>> {
    let root = workspace.resolve(&root.display().to_string())?;
    apply(input, |path| {
        let real = workspace.resolve_file(&root.join(path).display().to_string())?;
        if real.starts_with(&root) && real != root {
            return Ok(real);
        }
        Err(Problem::new(format!(
            "{path} is outside of {}: the patch can only change files below it",
            root.display()
        )))
    })
}

/// Checks the whole patch, then applies all of it or nothing.
fn apply(input: &str, resolve: impl Fn(&str) -> Result<PathBuf>) -> Result<Vec<Changed>> {
    let sections = parse::parse(input)?;
    let _lock = lock_changes()?;
    let mut plan = plan::Plan::default();
    for section in &sections {
        plan.add(section, &resolve)?;
    }
    plan.apply()
}

/// The list of changed files with their diffs.
pub(crate) fn summary(workspace: &Workspace, changed: &[Changed]) -> String {
    let mut list = String::from("Done:\n");
    let mut diffs = String::new();
    for file in changed {
        let name = workspace.display(&file.path);
        let letter = match (&file.before, &file.after) {
            (_, None) => 'D',
            (None, Some(_)) => 'A',
            (Some(_), Some(_)) => 'M',
        };
        list.push_str(&format!("{letter} {name}\n"));
        if let (Some(before), Some(after)) = (&file.before, &file.after)
            && diffs.len() < MAX_DIFFS
        {
            diffs.push_str(&diff(&name, before, after));
        }
    }
    let text = if diffs.is_empty() {
        list
    } else {
        format!("{list}\n{diffs}")
    };
    crate::reply::truncate(text, MAX_DIFFS * 2)
}

#[cfg(test)]
mod tests;
