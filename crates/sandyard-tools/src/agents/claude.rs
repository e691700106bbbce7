//! `claude_code`: the Claude Code CLI.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::run::{Job, one_line, run};
use super::{MAX_ANSWER, Outcome, check_prompt, check_value, folder, program, reply};
use crate::call::Call;
use crate::reply::{Answer, Problem, Result, truncate};
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
    /// Tools that the agent may use, for example "Read" or "Bash(git:*)"; all others are refused (default: all tools).
    allowed_tools: Option<Vec<String>>,
    /// Maximum number of turns.
    max_turns: Option<u32>,
    /// Seconds after which the agent is killed, 1 to 14400 (default 1800).
    #[serde(default = "super::default_timeout")]
    timeout: u64,
    /// session_id of an earlier result, to continue that conversation.
    session_id: Option<String>,
}

/// The tool.
/// The program, and its package.
const CLI: (&str, &str) = ("claude", "@anthropic-ai/claude-code");

pub(super) fn tool() -> Tool {
    crate::tool::tool("claude_code", Effect::ChangesExternal, claude_code)
        .title("Claude Code")
        .description("Give a task to the Claude Code agent. It works on its own in this sandbox, with its own tools (files, shell, web), and returns its \
         final message. Takes minutes and reports progress. Needs the CLI (template `agent`) and an API key in the environment.")
        .with_output::<Outcome>()
        .usable_if(|tool_state| program(tool_state, CLI.0, CLI.1).is_ok())
}

async fn claude_code(tool_state: Arc<ToolState>, args: Args, call: Call) -> Answer {
    check_prompt(&args.prompt)?;
    let job = Job {
        program: program(&tool_state, CLI.0, CLI.1)?,
        args: options(&args)?,
        // Without IS_SANDBOX it refuses to run as root with all tools allowed.
        env: vec![("IS_SANDBOX", "1"), ("DISABLE_AUTOUPDATER", "1")],
        folder: folder(&tool_state, args.cwd.as_deref())?,
        prompt: args.prompt,
        seconds: args.timeout,
    };
    let mut transcript = Transcript::default();
    let ended = run(job, &call, |line| transcript.record(&line)).await?;
    let result = transcript.result.unwrap_or_default();
    let is_error = !ended.is_success() || result["is_error"].as_bool().unwrap_or(true);
    let mut text = match result["result"].as_str() {
        Some(text) => text.to_owned(),
        None => transcript.last_message,
    };
    if is_error {
        let failure = ended.failure_text("Claude Code", args.timeout);
        let kind = result["subtype"].as_str().unwrap_or_default();
        text = format!("{failure} {kind}\n{}\n{text}", ended.stderr_tail);
    }
    Ok(reply(Outcome {
        text,
        exit_code: ended.status.and_then(|status| status.code()),
        duration_seconds: ended.duration.as_secs_f64(),
        session_id: transcript.session_id,
        cost_usd: result["total_cost_usd"].as_f64(),
        num_turns: result["num_turns"].as_u64(),
        is_error,
    }))
}

fn options(args: &Args) -> Result<Vec<String>> {
    let mut options: Vec<String> = ["-p", "--output-format", "stream-json", "--verbose"]
        .map(String::from)
        .into();
    let mut with = |name: &str, value: String| options.extend([name.to_owned(), value]);
    if let Some(model) = &args.model {
        check_value("model", model)?;
        with("--model", model.clone());
    }
    if let Some(turns) = args.max_turns {
        with("--max-turns", turns.max(1).to_string());
    }
    if let Some(session) = &args.session_id {
        check_value("session_id", session)?;
        with("--resume", session.clone());
    }
    match &args.allowed_tools {
        Some(tools) => {
            for tool in tools {
                let is_plain = !tool.is_empty()
                    && tool.len() <= 500
                    && !tool.contains(|c: char| c.is_control() || c == ',');
                if !is_plain || tool.starts_with('-') {
                    return Err(Problem::new(format!(
                        "invalid entry {tool:?} in allowed_tools"
                    )));
                }
            }
            // No one can answer a permission prompt, so other tools are refused.
            with("--allowedTools", tools.join(","));
            with("--permission-mode", "default".into());
        }
        None => options.push("--dangerously-skip-permissions".into()),
    }
    Ok(options)
}

/// Output of the CLI so far.
#[derive(Default)]
struct Transcript {
    session_id: Option<String>,
    last_message: String,
    result: Option<Value>,
}

impl Transcript {
    fn record(&mut self, line: &Value) -> Vec<String> {
        if let Some(id) = line["session_id"].as_str() {
            self.session_id = Some(one_line(id, 200));
        }
        match line["type"].as_str() {
            Some("assistant") => {
                let blocks = line["message"]["content"].as_array();
                blocks
                    .into_iter()
                    .flatten()
                    .filter_map(|block| self.block(block))
                    .collect()
            }
            Some("result") => {
                self.result = Some(line.clone());
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn block(&mut self, block: &Value) -> Option<String> {
        match block["type"].as_str()? {
            "text" => {
                let text = block["text"].as_str()?;
                self.last_message = truncate(text.to_owned(), MAX_ANSWER);
                Some(one_line(text, 500))
            }
            "tool_use" => {
                let name = block["name"].as_str()?;
                let input = &block["input"];
                let main = [
                    "command",
                    "file_path",
                    "path",
                    "pattern",
                    "url",
                    "query",
                    "description",
                    "prompt",
                ];
                let what = main.iter().find_map(|key| input[*key].as_str());
                let what = what.map_or_else(|| input.to_string(), str::to_owned);
                Some(format!("{}: {}", one_line(name, 100), one_line(&what, 200)))
            }
            _ => None,
        }
    }
}
