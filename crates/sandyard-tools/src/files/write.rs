//! Writing whole files: `Write`, and `write_file` for the first clients.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

use super::blocking::blocking;
use super::change::{self, turn, write_atomically};
use super::diff::diff;
use crate::reply::{Answer, Problem, Reply};
use crate::tool::{Effect, Tool, tool};
use crate::workshop::Workshop;

#[derive(Deserialize, JsonSchema)]
struct WriteArguments {
    /// The file: an absolute path, or one relative to the workspace. Missing folders are made.
    file_path: String,
    /// The whole content.
    content: String,
}

#[derive(Deserialize, JsonSchema)]
struct ShortArguments {
    /// The file: an absolute path, or one relative to the workspace. Missing folders are made.
    #[serde(alias = "file_path")]
    path: String,
    /// The whole content.
    content: String,
}

/// `Write`.
pub(super) fn write_tool() -> Tool {
    tool::<WriteArguments, _, _>(
        "Write",
        "Write a file",
        Effect::Changes,
        "Writes a file as a whole, a new one or over the one that is there, and answers with what became different. To \
         change a part of a file use Edit.",
        |workshop, arguments, _call| async move {
            write(&workshop, arguments.file_path, arguments.content).await
        },
    )
}

/// `write_file`.
pub(super) fn short_tool() -> Tool {
    tool::<ShortArguments, _, _>(
        "write_file",
        "Write a file",
        Effect::Changes,
        "Writes a file as a whole, a new one or over the one that is there. The same as Write.",
        |workshop, arguments, _call| async move {
            write(&workshop, arguments.path, arguments.content).await
        },
    )
}

async fn write(workshop: &Workshop, path: String, content: String) -> Answer {
    let workspace = workshop.workspace.clone();
    let done = blocking(move || {
        let path = workspace.resolve_file(&path)?;
        let _turn = turn()?;
        let before = before(&path);
        write_atomically(&path, &content)?;
        Ok(told(&workspace.shown(&path), before, &content))
    });
    done.await.map(Reply::text)
}

/// What was there before.
enum Before {
    Nothing,
    Text(String),
    /// Something that cannot be compared.
    Other,
}

fn before(path: &Path) -> Before {
    match change::read(path) {
        Ok(None) => Before::Nothing,
        Ok(Some(text)) => Before::Text(text),
        Err(Problem { .. }) => Before::Other,
    }
}

fn told(name: &str, before: Before, content: &str) -> String {
    let (lines, bytes) = (content.lines().count(), content.len());
    match before {
        Before::Nothing => format!("created {name}: {lines} lines, {bytes} bytes"),
        Before::Other => format!("replaced {name}: {lines} lines, {bytes} bytes"),
        Before::Text(text) => diff(name, &text, content),
    }
}
