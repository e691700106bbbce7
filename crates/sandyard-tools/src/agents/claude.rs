//! The Claude Code CLI.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::run::{Job, one_line, run};
use super::{MAX_ANSWER, Outcome, check_prompt, check_word, folder, program, reply};
use crate::call::Call;
use crate::reply::{Answer, Problem, cut};
use crate::tool::{Effect, Tool};
use crate::workshop::Workshop;

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// The task, in full: the agent knows nothing of this conversation.
    prompt: String,
    /// The folder it works in; the workspace by default.
    cwd: Option<String>,
    /// The model, by the CLI's own names.
    model: Option<String>,
    /// Tools it may use without asking, like "Read" or "Bash(git:*)"; all others are refused then. Without this it may use all.
    allowed_tools: Option<Vec<String>>,
    /// Most turns it may take.
    max_turns: Option<u32>,
    /// Seconds after which it is ended, up to 14400.
    #[serde(default = "super::half_an_hour")]
    timeout: u64,
    /// A session_id that was answered before: the agent goes on there.
    session_id: Option<String>,
}

/// The tool.
pub(super) fn tool() -> Tool {
    crate::tool::tool::<Args, _, _>(
        "claude_code",
        "Claude Code",
        Effect::ChangesOutside,
        "Gives a task to the Claude Code agent, which works on it by itself in this sandbox with its own tools (files, shell, \
         web), and answers with its final words. Takes minutes; progress is told meanwhile. Needs the CLI (template `agent`) \
         and an API key in the environment.",
        claude_code,
    )
    .answers::<Outcome>()
}

async fn claude_code(workshop: Arc<Workshop>, args: Args, call: Call) -> Answer {
    check_prompt(&args.prompt)?;
    let job = Job {
        program: program(&workshop, "claude", "@anthropic-ai/claude-code")?,
        args: options(&args)?,
        // Without this it refuses to work unasked as root; a sandbox is what it wants to be in then.
        env: vec![("IS_SANDBOX", "1"), ("DISABLE_AUTOUPDATER", "1")],
        folder: folder(&workshop, args.cwd.as_deref())?,
        prompt: args.prompt,
        seconds: args.timeout,
    };
    let mut heard = Heard::default();
    let ended = run(job, &call, |line| heard.hear(&line)).await?;
    let result = heard.result.unwrap_or_default();
    let is_error = !ended.is_success() || result["is_error"].as_bool().unwrap_or(true);
    let mut text = match result["result"].as_str() {
        Some(text) => text.to_owned(),
        None => heard.last_words,
    };
    if is_error {
        let why = ended.words("Claude Code", args.timeout);
        let kind = result["subtype"].as_str().unwrap_or_default();
        text = format!("{why} {kind}\n{}\n{text}", ended.complaints);
    }
    Ok(reply(Outcome {
        text,
        exit_code: ended.status.and_then(|status| status.code()),
        duration_seconds: ended.took.as_secs_f64(),
        session_id: heard.session_id,
        cost_usd: result["total_cost_usd"].as_f64(),
        num_turns: result["num_turns"].as_u64(),
        is_error,
    }))
}

fn options(args: &Args) -> Result<Vec<String>, Problem> {
    let mut options: Vec<String> = ["-p", "--output-format", "stream-json", "--verbose"]
        .map(String::from)
        .into();
    let mut with = |name: &str, value: String| options.extend([name.to_owned(), value]);
    if let Some(model) = &args.model {
        check_word("model", model)?;
        with("--model", model.clone());
    }
    if let Some(turns) = args.max_turns {
        with("--max-turns", turns.max(1).to_string());
    }
    if let Some(session) = &args.session_id {
        check_word("session_id", session)?;
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
                        "allowed_tools has {tool:?}, which names no tool"
                    )));
                }
            }
            // Nobody is there to be asked: what is not allowed is refused.
            with("--allowedTools", tools.join(","));
            with("--permission-mode", "default".into());
        }
        None => options.push("--dangerously-skip-permissions".into()),
    }
    Ok(options)
}

/// What was heard so far.
#[derive(Default)]
struct Heard {
    session_id: Option<String>,
    last_words: String,
    result: Option<Value>,
}

impl Heard {
    fn hear(&mut self, line: &Value) -> Vec<String> {
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
                self.last_words = cut(text.to_owned(), MAX_ANSWER);
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
