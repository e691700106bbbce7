//! `codex`: the Codex CLI.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::run::{Job, one_line, run};
use super::{MAX_ANSWER, Outcome, check_prompt, check_value, folder, program, reply};
use crate::call::Call;
use crate::reply::{Answer, Result, truncate};
use crate::tool::{Effect, Tool};
use crate::tool_state::ToolState;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The complete task; the agent does not see this conversation.
    prompt: String,
    /// Working directory, absolute or relative to the workspace (default: the workspace).
    cwd: Option<String>,
    /// Model name as the CLI expects it (default: the CLI's default).
    model: Option<String>,
    /// Seconds after which the agent is killed, 1 to 14400 (default 1800).
    #[serde(default = "super::default_timeout")]
    timeout: u64,
    /// session_id of an earlier result, to continue that conversation.
    session_id: Option<String>,
}

/// The tool.
/// The program, and its package.
const CLI: (&str, &str) = ("codex", "@openai/codex");

pub(super) fn tool() -> Tool {
    crate::tool::tool("codex", Effect::ChangesExternal, codex)
        .title("Codex")
        .description("Give a task to the Codex agent. It works on its own in this sandbox, with its own tools (files, shell), and returns its final \
         message. Takes minutes and reports progress. Needs the CLI (template `agent`) and an API key in the environment.")
        .with_output::<Outcome>()
        .usable_if(|tool_state| program(tool_state, CLI.0, CLI.1).is_ok())
}

async fn codex(tool_state: Arc<ToolState>, args: Args, call: Call) -> Answer {
    check_prompt(&args.prompt)?;
    let job = Job {
        program: program(&tool_state, CLI.0, CLI.1)?,
        args: options(&args)?,
        env: Vec::new(),
        folder: folder(&tool_state, args.cwd.as_deref())?,
        prompt: args.prompt,
        seconds: args.timeout,
    };
    let mut transcript = Transcript::default();
    let ended = run(job, &call, |line| transcript.record(&line)).await?;
    let is_error = !ended.is_success() || transcript.failure.is_some();
    let mut text = transcript.last_message;
    if is_error {
        let summary = ended.failure_text("Codex", args.timeout);
        let failure = transcript.failure.unwrap_or_default();
        text = format!("{summary}\n{failure}\n{}\n{text}", ended.stderr_tail);
    }
    Ok(reply(Outcome {
        text,
        exit_code: ended.status.and_then(|status| status.code()),
        duration_seconds: ended.duration.as_secs_f64(),
        session_id: transcript.session_id,
        cost_usd: None,
        num_turns: Some(transcript.turns),
        is_error,
    }))
}

fn options(args: &Args) -> Result<Vec<String>> {
    let mut options: Vec<String> = vec!["exec".into()];
    if args.session_id.is_some() {
        options.push("resume".into());
    }
    // This is a sandbox already, and Codex cannot create its own one in it.
    let plain = [
        "--json",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
    ];
    options.extend(plain.map(String::from));
    if let Some(model) = &args.model {
        check_value("model", model)?;
        options.extend(["--model".into(), model.clone()]);
    }
    if let Some(session) = &args.session_id {
        check_value("session_id", session)?;
        options.push(session.clone());
    }
    // The prompt is on standard input.
    options.push("-".into());
    Ok(options)
}

/// Output of the CLI so far.
#[derive(Default)]
struct Transcript {
    session_id: Option<String>,
    last_message: String,
    failure: Option<String>,
    turns: u64,
}

impl Transcript {
    fn record(&mut self, line: &Value) -> Vec<String> {
        let progress = match line["type"].as_str() {
            Some("thread.started") => {
                self.session_id = line["thread_id"].as_str().map(|id| one_line(id, 200));
                None
            }
            Some("turn.started") => {
                self.turns += 1;
                // Codex recovered from an earlier error.
                self.failure = None;
                None
            }
            Some("turn.completed") => {
                self.failure = None;
                None
            }
            Some("turn.failed") => self.fail(&line["error"]["message"]),
            Some("error") => self.fail(&line["message"]),
            Some("item.started") => started(&line["item"]),
            Some("item.completed") => self.completed(&line["item"]),
            _ => None,
        };
        progress.into_iter().collect()
    }

    fn fail(&mut self, message: &Value) -> Option<String> {
        let text = truncate(message.as_str()?.to_owned(), 4000);
        let line = one_line(&text, 500);
        self.failure = Some(text);
        Some(line)
    }

    fn completed(&mut self, item: &Value) -> Option<String> {
        match item["type"].as_str()? {
            "agent_message" => {
                let text = item["text"].as_str()?;
                self.last_message = truncate(text.to_owned(), MAX_ANSWER);
                Some(one_line(text, 500))
            }
            "file_change" => {
                let changes = item["changes"].as_array()?;
                let paths: Vec<_> = changes
                    .iter()
                    .filter_map(|change| change["path"].as_str())
                    .collect();
                Some(format!("changed {}", one_line(&paths.join(", "), 300)))
            }
            _ => None,
        }
    }
}

fn started(item: &Value) -> Option<String> {
    match item["type"].as_str()? {
        "command_execution" => Some(format!(
            "command: {}",
            one_line(item["command"].as_str()?, 200)
        )),
        "mcp_tool_call" => Some(format!("tool: {}", one_line(item["tool"].as_str()?, 100))),
        "web_search" => Some(format!(
            "search: {}",
            one_line(item["query"].as_str()?, 200)
        )),
        _ => None,
    }
}
