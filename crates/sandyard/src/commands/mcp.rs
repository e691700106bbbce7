//! `sandyard mcp`: MCP on standard input and output, for assistants that start a program; the server does the work.
//!
//! Messages pass unchanged. On standard output there is nothing but the protocol.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use sandyard_agent::TOOLS_PORT;
use sandyard_client::{ClientError, McpChannel};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::task::{AbortHandle, JoinSet};

use crate::global::Global;
use crate::output;

/// Longest message that is taken.
const MAX_MESSAGE: u64 = 64 << 20;
/// How long answers are waited for when nothing more is asked.
const LAST_WORDS: Duration = Duration::from_secs(60);
/// The code of a failure that is neither the client's nor the tool's.
const INTERNAL_ERROR: i64 = -32603;
const PARSE_ERROR: i64 = -32700;

#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// Use the tools of this sandbox, by its id or name, instead of the server's
    #[arg(long, value_name = "ID")]
    sandbox: Option<String>,
    /// The port of its tool server
    #[arg(long, value_name = "PORT", default_value_t = TOOLS_PORT, requires = "sandbox", value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Print what to put into an assistant's settings, and end
    #[arg(long)]
    print_config: bool,
}

/// Carries messages until there are no more.
pub(crate) async fn mcp(global: &Global, args: &McpArgs) -> anyhow::Result<ExitCode> {
    if args.print_config {
        output::json(&config(global, args))?;
        if global.named_url().is_some() {
            output::note(
                "note: no key is printed; a server that asks for one gets it from SANDYARD_API_KEY in `env`",
            );
        }
        return Ok(ExitCode::SUCCESS);
    }
    let client = global.client()?;
    let channel = match &args.sandbox {
        // Ports are reached by a sandbox's id alone.
        Some(name) => {
            let id = match client.inspect(name).await {
                Ok(sandbox) => sandbox.sandbox_id,
                // It may come back while the assistant runs, which is told of every request until then.
                Err(error) if error.is_unreachable() => name.clone(),
                Err(error) => return Err(error.into()),
            };
            client.sandbox_mcp(&id, args.port)
        }
        None => client.mcp(),
    };
    Bridge::new(channel).run().await?;
    Ok(ExitCode::SUCCESS)
}

/// What an assistant needs to start this. No key is printed: it comes from the environment or the data directory.
fn config(global: &Global, args: &McpArgs) -> Value {
    let program = std::env::current_exe()
        .map_or_else(|_| "sandyard".into(), |path| path.display().to_string());
    let mut words = vec!["mcp".to_owned()];
    if let Some(id) = &args.sandbox {
        words.extend(["--sandbox".to_owned(), id.clone()]);
        if args.port != TOOLS_PORT {
            words.extend(["--port".to_owned(), args.port.to_string()]);
        }
    }
    let mut server = json!({"command": program, "args": words});
    // Whoever starts it does so somewhere else: paths are written whole.
    let whole = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    let path = |path: PathBuf| whole(path).display().to_string();
    for (name, value) in [
        ("SANDYARD_URL", global.named_url()),
        ("SANDYARD_DATA_DIR", global.chosen_data_dir().map(path)),
        ("SANDYARD_CA_CERT", global.ca_cert().map(path)),
    ] {
        if let Some(value) = value {
            server["env"][name] = value.into();
        }
    }
    json!({"mcpServers": {"sandyard": server}})
}

/// What has to be known of a message to carry it.
#[derive(Default, Deserialize)]
struct Glance {
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
}

struct Bridge {
    channel: Arc<McpChannel>,
    tasks: JoinSet<()>,
    /// Requests under way, by id.
    running: HashMap<String, AbortHandle>,
    listener: Option<AbortHandle>,
    has_complained: bool,
}

impl Bridge {
    fn new(channel: McpChannel) -> Self {
        Self {
            channel: Arc::new(channel),
            tasks: JoinSet::new(),
            running: HashMap::new(),
            listener: None,
            has_complained: false,
        }
    }

    async fn run(mut self) -> anyhow::Result<()> {
        let mut input = BufReader::new(tokio::io::stdin());
        loop {
            let mut line = Vec::new();
            let mut bounded = (&mut input).take(MAX_MESSAGE);
            let read = bounded.read_until(b'\n', &mut line);
            if read.await.context("reading a message")? == 0 {
                break;
            }
            if line.len() as u64 == MAX_MESSAGE {
                anyhow::bail!("a message has more than {MAX_MESSAGE} bytes");
            }
            let text = String::from_utf8_lossy(&line);
            if !text.trim().is_empty() {
                self.carry(text.trim()).await;
            }
            while self.tasks.try_join_next().is_some() {}
            self.running.retain(|_, task| !task.is_finished());
            if !output::is_read() {
                break;
            }
        }
        let rest = async { while self.tasks.join_next().await.is_some() {} };
        if let Some(listener) = &self.listener {
            listener.abort();
        }
        let _ = tokio::time::timeout(LAST_WORDS, rest).await;
        self.channel.close().await;
        Ok(())
    }

    async fn carry(&mut self, message: &str) {
        let Ok(glance) = serde_json::from_str::<Glance>(message) else {
            output::line(
                failure(&Value::Null, PARSE_ERROR, "a message is no JSON-RPC").to_string(),
            );
            return;
        };
        let method = glance.method.as_deref().unwrap_or_default();
        match glance.id.filter(|_| !method.is_empty()) {
            // Others depend on it.
            Some(id) if method == "initialize" => request(&self.channel, &id, message).await,
            Some(id) => self.begin(id, message.to_owned()),
            // In order, so that what follows finds the server ready.
            None => self.notify(method, &glance.params, message).await,
        }
    }

    fn begin(&mut self, id: Value, message: String) {
        let channel = self.channel.clone();
        let name = id.to_string();
        let task = self
            .tasks
            .spawn(async move { request(&channel, &id, &message).await });
        self.running.insert(name, task);
    }

    async fn notify(&mut self, method: &str, params: &Value, message: &str) {
        let sent = self.channel.send(message, output_line).await;
        if let Err(error) = sent
            && !std::mem::replace(&mut self.has_complained, true)
        {
            output::error(&error.into());
        }
        match method {
            "notifications/cancelled" => {
                // By hanging up it is cancelled even where the notice did not arrive.
                if let Some(task) = self.running.remove(&params["requestId"].to_string()) {
                    task.abort();
                }
            }
            "notifications/initialized" if self.listener.is_none() => {
                let channel = self.channel.clone();
                let task = self
                    .tasks
                    .spawn(async move { channel.listen(output_line).await });
                self.listener = Some(task);
            }
            _ => {}
        }
    }
}

fn output_line(message: &str) {
    output::line(message);
}

/// Carries a request, and answers in the server's place if it cannot.
async fn request(channel: &McpChannel, id: &Value, message: &str) {
    let mut is_answered = false;
    let outcome = channel
        .send(message, |answer| {
            is_answered |= is_answer(answer, id);
            output::line(answer);
        })
        .await;
    let problem = match outcome {
        _ if is_answered => return,
        Ok(()) => "the server ended the call without an answer: try it again".to_owned(),
        Err(error) => {
            let text = explained(&error);
            output::note(format!("error: {text}"));
            text
        }
    };
    output::line(failure(id, INTERNAL_ERROR, &problem).to_string());
}

fn is_answer(message: &str, id: &Value) -> bool {
    let message: Value = serde_json::from_str(message).unwrap_or_default();
    message.get("method").is_none() && message["id"] == *id
}

/// What went wrong and what to do about it.
fn explained(error: &ClientError) -> String {
    let hint = match error {
        ClientError::Unreachable { .. } => Some(
            "start it with `sandyard serve`, or name another with --url or SANDYARD_URL".to_owned(),
        ),
        ClientError::Api(refusal) if refusal.status == 401 => {
            Some("set SANDYARD_API_KEY".to_owned())
        }
        other => output::client_hint(other),
    };
    joined(&error.to_string(), hint.as_deref())
}

/// A problem and what to do about it, in one line.
fn joined(problem: &str, hint: Option<&str>) -> String {
    match hint {
        Some(hint) if problem.ends_with('.') => format!("{problem} {hint}"),
        Some(hint) => format!("{problem}: {hint}"),
        None => problem.to_owned(),
    }
}

fn failure(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_and_its_hint_are_one_text() {
        let hint = Some("Check the address.");
        assert_eq!(
            joined("It is deleted.", hint),
            "It is deleted. Check the address."
        );
        assert_eq!(joined("no sandbox", hint), "no sandbox: Check the address.");
        assert_eq!(joined("no sandbox", None), "no sandbox");
    }

    #[test]
    fn an_answer_is_told_from_what_comes_before_it() {
        assert!(is_answer(
            r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
            &json!(7)
        ));
        assert!(!is_answer(
            r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#,
            &json!(7)
        ));
        assert!(!is_answer(
            r#"{"jsonrpc":"2.0","id":"7","result":{}}"#,
            &json!(7)
        ));
        assert!(!is_answer("no JSON", &json!(7)));
    }
}
