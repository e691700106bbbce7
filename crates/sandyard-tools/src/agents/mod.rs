//! Other coding agents: the Claude Code and Codex CLIs, where the template has them.
//!
//! Their keys come from the sandbox's environment; nothing is written for them here.

mod claude;
mod codex;
mod run;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use crate::process::find_program;
use crate::reply::{Problem, Reply, cut};
use crate::tool::Tool;
use crate::workshop::Workshop;

/// Longest time a CLI may be given.
const MAX_TIMEOUT: u64 = 4 * 60 * 60;
/// Longest task.
const MAX_PROMPT: usize = 1024 * 1024;
/// Most of the final text that is answered.
const MAX_ANSWER: usize = 100_000;

/// The tools.
pub(crate) fn tools() -> Vec<Tool> {
    vec![claude::tool(), codex::tool()]
}

/// What is answered for programs.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct Outcome {
    /// Its final words.
    text: String,
    /// The exit code of the CLI; none if it was ended by us or by a signal.
    exit_code: Option<i32>,
    /// How long it ran.
    duration_seconds: f64,
    /// The conversation, to go on with.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    /// What it cost, as the CLI says.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    /// How many turns the model took.
    #[serde(skip_serializing_if = "Option::is_none")]
    num_turns: Option<u64>,
    /// Whether the task failed.
    is_error: bool,
}

/// How long a task may take when nothing is said of it.
fn half_an_hour() -> u64 {
    1800
}

/// The final words, and the same with all else for programs.
fn reply(mut outcome: Outcome) -> Reply {
    let is_error = outcome.is_error;
    outcome.text = cut(outcome.text.trim().to_owned(), MAX_ANSWER);
    Reply::text(outcome.text.clone())
        .with_structured(outcome)
        .with_failure(is_error)
}

/// The CLI's program, or words on how to get it.
fn program(workshop: &Workshop, name: &str, package: &str) -> Result<PathBuf, Problem> {
    let home = &workshop.options.home;
    let (local, npm) = (home.join(".local/bin"), home.join(".npm-global/bin"));
    find_program(name, &[&local, &npm]).ok_or_else(|| {
        Problem::new(format!(
            "the program {name} is not installed in this sandbox: use a sandbox of the template `agent`, or install it with \
             `npm install -g {package}`"
        ))
    })
}

/// Where it is to work.
fn folder(workshop: &Workshop, cwd: Option<&str>) -> Result<PathBuf, Problem> {
    let folder = workshop.workspace.resolve(cwd.unwrap_or("."))?;
    if folder.is_dir() {
        return Ok(folder);
    }
    Err(Problem::new(format!(
        "{} is no folder: make it first",
        folder.display()
    )))
}

fn check_prompt(prompt: &str) -> Result<(), Problem> {
    match prompt.len() {
        _ if prompt.trim().is_empty() => {
            Err(Problem::new("the prompt is empty: say what is to be done"))
        }
        0..=MAX_PROMPT => Ok(()),
        long => Err(Problem::new(format!(
            "the prompt has {long} bytes, {MAX_PROMPT} are the most: put the rest into a file and name it"
        ))),
    }
}

/// A name that cannot be taken for an option of a command line.
fn check_word(what: &str, word: &str) -> Result<(), Problem> {
    let is_plain = |c: char| !c.is_control() && !c.is_whitespace();
    if !word.is_empty() && word.len() <= 200 && !word.starts_with('-') && word.chars().all(is_plain)
    {
        return Ok(());
    }
    Err(Problem::new(format!(
        "{what} cannot be {word:?}: it is one word that does not begin with -"
    )))
}
