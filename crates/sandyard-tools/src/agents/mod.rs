//! `claude_code` and `codex`: other coding agents, if the template has their CLIs.
//!
//! Their API keys come from the sandbox's environment.

mod claude;
mod codex;
mod run;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use crate::process::find_program;
use crate::reply::{Problem, Reply, Result, truncate};
use crate::tool::Tool;
use crate::tool_state::ToolState;

/// Maximum timeout, in seconds.
const MAX_TIMEOUT: u64 = 4 * 60 * 60;
/// Maximum length of a prompt, in bytes.
const MAX_PROMPT: usize = 1024 * 1024;
/// Maximum length of the final text.
const MAX_ANSWER: usize = 100_000;

/// The tools.
pub(crate) fn tools() -> Vec<Tool> {
    vec![claude::tool(), codex::tool()]
}

/// The structured result.
#[derive(Debug, Default, Serialize, JsonSchema)]
struct Outcome {
    /// Final message of the agent.
    text: String,
    /// Exit code of the CLI; null if it was killed.
    exit_code: Option<i32>,
    /// Duration in seconds.
    duration_seconds: f64,
    /// ID of the conversation, to continue it.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    /// Cost in US dollars, as reported by the CLI.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    /// Number of turns of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    num_turns: Option<u64>,
    /// Whether the task failed.
    is_error: bool,
}

/// Default timeout, in seconds.
fn default_timeout() -> u64 {
    1800
}

/// The reply: the final text and the structured result.
fn reply(mut outcome: Outcome) -> Reply {
    let is_error = outcome.is_error;
    outcome.text = truncate(outcome.text.trim().to_owned(), MAX_ANSWER);
    Reply::text(outcome.text.clone())
        .with_structured(outcome)
        .with_failure(is_error)
}

/// The CLI's program, or a problem that says how to install it.
fn program(tool_state: &ToolState, name: &str, package: &str) -> Result<PathBuf> {
    let home = &tool_state.options.home;
    let (local, npm) = (home.join(".local/bin"), home.join(".npm-global/bin"));
    find_program(name, &[&local, &npm]).ok_or_else(|| {
        Problem::new(format!(
            "the program {name} is not installed in this sandbox: use a sandbox of the template `agent`, or install it with \
             `npm install -g {package}`"
        ))
    })
}

/// The working directory of the CLI.
fn folder(tool_state: &ToolState, cwd: Option<&str>) -> Result<PathBuf> {
    let folder = tool_state.workspace.resolve(cwd.unwrap_or("."))?;
    if folder.is_dir() {
        return Ok(folder);
    }
    Err(Problem::new(format!(
        "{} is not a folder: create it first",
        folder.display()
    )))
}

fn check_prompt(prompt: &str) -> Result<()> {
    match prompt.len() {
        _ if prompt.trim().is_empty() => {
            Err(Problem::new("the prompt is empty: describe the task"))
        }
        0..=MAX_PROMPT => Ok(()),
        long => Err(Problem::new(format!(
            "the prompt has {long} bytes, the maximum is {MAX_PROMPT}: put the rest into a file and name it"
        ))),
    }
}

/// Checks that a value cannot be mistaken for a command-line option.
fn check_value(name: &str, value: &str) -> Result<()> {
    let is_plain = |c: char| !c.is_control() && !c.is_whitespace();
    if !value.is_empty()
        && value.len() <= 200
        && !value.starts_with('-')
        && value.chars().all(is_plain)
    {
        return Ok(());
    }
    Err(Problem::new(format!(
        "invalid {name} {value:?}: it must be one word that does not start with -"
    )))
}
