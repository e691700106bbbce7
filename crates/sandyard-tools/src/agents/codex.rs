//! The Codex CLI.

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
    /// Seconds after which it is ended, up to 14400.
    #[serde(default = "super::half_an_hour")]
    timeout: u64,
    /// A session_id that was answered before: the agent goes on there.
    session_id: Option<String>,
}

/// The tool.
pub(super) fn tool() -> Tool {
    crate::tool::tool::<Args, _, _>(
        "codex",
        "Codex",
        Effect::ChangesOutside,
        "Gives a task to the Codex agent, which works on it by itself in this sandbox with its own tools (files, shell), and \
         answers with its final words. Takes minutes; progress is told meanwhile. Needs the CLI (template `agent`) and an API \
         key in the environment.",
        codex,
    )
    .answers::<Outcome>()
}

async fn codex(workshop: Arc<Workshop>, args: Args, call: Call) -> Answer {
    check_prompt(&args.prompt)?;
    let job = Job {
        program: program(&workshop, "codex", "@openai/codex")?,
        args: options(&args)?,
        env: Vec::new(),
        folder: folder(&workshop, args.cwd.as_deref())?,
        prompt: args.prompt,
        seconds: args.timeout,
    };
    let mut heard = Heard::default();
    let ended = run(job, &call, |line| heard.hear(&line)).await?;
    let is_error = !ended.is_success() || heard.failure.is_some();
    let mut text = heard.last_words;
    if is_error {
        let why = ended.words("Codex", args.timeout);
        let failure = heard.failure.unwrap_or_default();
        text = format!("{why}\n{failure}\n{}\n{text}", ended.complaints);
    }
    Ok(reply(Outcome {
        text,
        exit_code: ended.status.and_then(|status| status.code()),
        duration_seconds: ended.took.as_secs_f64(),
        session_id: heard.session_id,
        cost_usd: None,
        num_turns: Some(heard.turns),
        is_error,
    }))
}

fn options(args: &Args) -> Result<Vec<String>, Problem> {
    let mut options: Vec<String> = vec!["exec".into()];
    if args.session_id.is_some() {
        options.push("resume".into());
    }
    // We are in a sandbox already, and its own one cannot be made inside of ours.
    let plain = [
        "--json",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
    ];
    options.extend(plain.map(String::from));
    if let Some(model) = &args.model {
        check_word("model", model)?;
        options.extend(["--model".into(), model.clone()]);
    }
    if let Some(session) = &args.session_id {
        check_word("session_id", session)?;
        options.push(session.clone());
    }
    // The task comes from standard input.
    options.push("-".into());
    Ok(options)
}

/// What was heard so far.
#[derive(Default)]
struct Heard {
    session_id: Option<String>,
    last_words: String,
    failure: Option<String>,
    turns: u64,
}

impl Heard {
    fn hear(&mut self, line: &Value) -> Vec<String> {
        let words = match line["type"].as_str() {
            Some("thread.started") => {
                self.session_id = line["thread_id"].as_str().map(|id| one_line(id, 200));
                None
            }
            Some("turn.started") => {
                self.turns += 1;
                // An error before this was one it got over.
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
        words.into_iter().collect()
    }

    fn fail(&mut self, message: &Value) -> Option<String> {
        let words = cut(message.as_str()?.to_owned(), 4000);
        let line = one_line(&words, 500);
        self.failure = Some(words);
        Some(line)
    }

    fn completed(&mut self, item: &Value) -> Option<String> {
        match item["type"].as_str()? {
            "agent_message" => {
                let text = item["text"].as_str()?;
                self.last_words = cut(text.to_owned(), MAX_ANSWER);
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
