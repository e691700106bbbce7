//! Patches of several files, in the form that starts with `*** Begin Patch`.

mod locate;
mod parse;
mod plan;

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use super::blocking::blocking;
use super::change::turn;
use super::diff::diff;
use crate::reply::{Problem, Reply};
use crate::tool::{Effect, Tool, tool};
use crate::workspace::Workspace;

/// Most characters that are told about one patch.
const MAX_TOLD: usize = 20_000;

const DESCRIPTION: &str = "Changes several files at once: everything in the patch is done, or nothing. The form:\n\
    *** Begin Patch\n\
    *** Add File: PATH (then every line of it with a + before it)\n\
    *** Delete File: PATH\n\
    *** Update File: PATH (then perhaps *** Move to: NEW_PATH, then changes)\n\
    @@ a line above the change, where the place is not clear without it\n \
    an unchanged line (a space before it)\n\
    -a line to be removed\n\
    +a line to be added\n\
    *** End of File (after a change at the very end)\n\
    *** End Patch\n\
    Give about three unchanged lines before and after every change.";

#[derive(Deserialize, JsonSchema)]
struct PatchArguments {
    /// The whole patch, from "*** Begin Patch" to "*** End Patch".
    input: String,
}

/// The tool.
pub(super) fn patch_tool() -> Tool {
    tool::<PatchArguments, _, _>(
        "apply_patch",
        "Apply a patch",
        Effect::Changes,
        DESCRIPTION,
        |workshop, arguments, _call| async move {
            let done = blocking(move || {
                let workspace = &workshop.workspace;
                let changed = apply(&arguments.input, |path| workspace.resolve_file(path))?;
                Ok(told(workspace, &changed))
            });
            Ok(Reply::text(done.await?))
        },
    )
}

/// One file a patch has changed.
#[derive(Debug)]
pub(crate) struct Changed {
    /// Which.
    pub(crate) path: PathBuf,
    /// Its text before; none: it was not there (or was removed unread).
    pub(crate) before: Option<String>,
    /// Its text now; none: it is gone.
    pub(crate) after: Option<String>,
}

/// Applies a patch whose paths are relative to a folder and must stay in it.
pub(crate) fn apply_patch_below(
    workspace: &Workspace,
    root: &Path,
    input: &str,
) -> Result<Vec<Changed>, Problem> {
    let root = workspace.resolve(&root.display().to_string())?;
    apply(input, |path| {
        let real = workspace.resolve_file(&root.join(path).display().to_string())?;
        if real.starts_with(&root) && real != root {
            return Ok(real);
        }
        Err(Problem::new(format!(
            "{path} is outside of {}: the patch may only change files below it",
            root.display()
        )))
    })
}

/// Checks the whole patch, then does all of it or nothing.
fn apply(
    input: &str,
    resolve: impl Fn(&str) -> Result<PathBuf, Problem>,
) -> Result<Vec<Changed>, Problem> {
    let sections = parse::parse(input)?;
    let _turn = turn()?;
    let mut plan = plan::Plan::default();
    for section in &sections {
        plan.add(section, &resolve)?;
    }
    plan.carry_out()
}

/// What was done, for people and models.
pub(crate) fn told(workspace: &Workspace, changed: &[Changed]) -> String {
    let mut list = String::from("Done:\n");
    let mut diffs = String::new();
    for file in changed {
        let name = workspace.shown(&file.path);
        let letter = match (&file.before, &file.after) {
            (_, None) => 'D',
            (None, Some(_)) => 'A',
            (Some(_), Some(_)) => 'M',
        };
        list.push_str(&format!("{letter} {name}\n"));
        if let (Some(before), Some(after)) = (&file.before, &file.after)
            && diffs.len() < MAX_TOLD
        {
            diffs.push_str(&diff(&name, before, after));
        }
    }
    let text = if diffs.is_empty() {
        list
    } else {
        format!("{list}\n{diffs}")
    };
    crate::reply::cut(text, MAX_TOLD * 2)
}

#[cfg(test)]
mod tests;
