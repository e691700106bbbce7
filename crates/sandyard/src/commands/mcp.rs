//! `sandyard mcp`: a bridge from MCP on standard input and output to the server's MCP endpoint.
//!
//! Messages pass unchanged. Standard output carries only the protocol.

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

/// Maximum length of a message.
const MAX_MESSAGE_BYTES: u64 = 64 << 20;
/// How long to wait for pending answers after standard input ends.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(60);
/// JSON-RPC error codes.
const INTERNAL_ERROR: i64 = -32603;
const PARSE_ERROR: i64 = -32700;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sandyard mcp --print-config      # for the settings of an MCP client
  sandyard mcp --sandbox build")]
pub(crate) struct McpArgs {
    /// Use the tool server of this sandbox (ID or name) instead of the server's own tools
    #[arg(long, value_name = "ID")]
    sandbox: Option<String>,
    /// Port of the sandbox's tool server
    #[arg(long, value_name = "PORT", default_value_t = TOOLS_PORT, requires = "sandbox", value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Print the configuration for an MCP client, and exit
    #[arg(long)]
    print_config: bool,
}

/// Forwards messages until standard input ends.
pub(crate) async fn mcp(global: &Global, args: &McpArgs) -> anyhow::Result<ExitCode> {
    if args.print_config {
        output::json(&config(global, args))?;
        if global.configured_url().is_some() {
            output::note(
                "note: the configuration contains no API key; if the server needs one, add SANDYARD_API_KEY to `env`",
            );
        }
        return Ok(ExitCode::SUCCESS);
    }
    let client = global.client()?;
    let channel = match &args.sandbox {
        // The address of a port contains the sandbox's ID, not its name.
        Some(name) => {
            let id = match client.inspect(name).await {
                Ok(sandbox) => sandbox.sandbox_id,
                // The server may return while the client runs. Until then every request gets an error.
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

/// The configuration for an MCP client. It contains no API key: that comes from the environment or the data directory.
fn config(global: &Global, args: &McpArgs) -> Value {
    let program = std::env::current_exe()
        .map_or_else(|_| "sandyard".into(), |path| path.display().to_string());
    let mut arguments = vec!["mcp".to_owned()];
    if let Some(id) = &args.sandbox {
        arguments.extend(["--sandbox".to_owned(), id.clone()]);
        if args.port != TOOLS_PORT {
            arguments.extend(["--port".to_owned(), args.port.to_string()]);
        }
    }
    let mut server = json!({"command": program, "args": arguments});
    // The client starts the program in another directory, so paths must be absolute.
    let absolute = |path: PathBuf| {
        let absolute = std::path::absolute(&path).unwrap_or(path);
        absolute.display().to_string()
    };
    for (name, value) in [
        ("SANDYARD_URL", global.configured_url()),
        (
            "SANDYARD_DATA_DIR",
            global.configured_data_dir().map(absolute),
        ),
        ("SANDYARD_CA_CERT", global.ca_cert().map(absolute)),
    ] {
        if let Some(value) = value {
            server["env"][name] = value.into();
        }
    }
    json!({"mcpServers": {"sandyard": server}})
}

/// The fields of a JSON-RPC message that the bridge needs.
#[derive(Default, Deserialize)]
struct MessageHead {
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
}

struct Bridge {
    channel: Arc<McpChannel>,
    tasks: JoinSet<()>,
    /// Pending requests by ID.
    running: HashMap<String, AbortHandle>,
    listener: Option<AbortHandle>,
    has_reported: bool,
}

impl Bridge {
    fn new(channel: McpChannel) -> Self {
        Self {
            channel: Arc::new(channel),
            tasks: JoinSet::new(),
            running: HashMap::new(),
            listener: None,
            has_reported: false,
        }
    }

    async fn run(mut self) -> anyhow::Result<()> {
        let mut input = BufReader::new(tokio::io::stdin());
        loop {
            let mut line = Vec::new();
            let mut bounded = (&mut input).take(MAX_MESSAGE_BYTES);
            let read = bounded.read_until(b'\n', &mut line);
            if read.await.context("reading a message")? == 0 {
                break;
            }
            if line.len() as u64 == MAX_MESSAGE_BYTES {
                anyhow::bail!("a message is longer than {MAX_MESSAGE_BYTES} bytes");
            }
            let text = String::from_utf8_lossy(&line);
            if !text.trim().is_empty() {
                self.forward(text.trim()).await;
            }
            while self.tasks.try_join_next().is_some() {}
            self.running.retain(|_, task| !task.is_finished());
            if !output::is_writable() {
                break;
            }
        }
        let rest = async { while self.tasks.join_next().await.is_some() {} };
        if let Some(listener) = &self.listener {
            listener.abort();
        }
        let _ = tokio::time::timeout(DRAIN_TIMEOUT, rest).await;
        self.channel.close().await;
        Ok(())
    }

    async fn forward(&mut self, message: &str) {
        let Ok(head) = serde_json::from_str::<MessageHead>(message) else {
            output::line(
                failure(
                    &Value::Null,
                    PARSE_ERROR,
                    "the message is not valid JSON-RPC",
                )
                .to_string(),
            );
            return;
        };
        let method = head.method.as_deref().unwrap_or_default();
        match head.id.filter(|_| !method.is_empty()) {
            // Later messages depend on it, so wait for the answer.
            Some(id) if method == "initialize" => request(&self.channel, &id, message).await,
            Some(id) => self.start(id, message.to_owned()),
            // In order, because later messages may depend on it.
            None => self.notify(method, &head.params, message).await,
        }
    }

    fn start(&mut self, id: Value, message: String) {
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
            && !std::mem::replace(&mut self.has_reported, true)
        {
            output::error(&error.into());
        }
        match method {
            "notifications/cancelled" => {
                // Closing the connection cancels the request even if the notification is lost.
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

/// Forwards a request. Answers with an error if the server does not answer.
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
        Ok(()) => "the server closed the connection without an answer: try again".to_owned(),
        Err(error) => {
            let text = describe(&error);
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

/// The error and its hint.
fn describe(error: &ClientError) -> String {
    let hint = match error {
        ClientError::Unreachable { .. } => Some(
            "start the server with `sandyard serve`, or set --url or SANDYARD_URL to another one"
                .to_owned(),
        ),
        ClientError::Api(refusal) if refusal.status == 401 => {
            Some("set SANDYARD_API_KEY".to_owned())
        }
        other => output::client_hint(other),
    };
    with_hint(&error.to_string(), hint.as_deref())
}

/// A problem and its hint as one line.
fn with_hint(problem: &str, hint: Option<&str>) -> String {
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
    fn a_hint_follows_the_problem() {
        let hint = Some("Check the address.");
        assert_eq!(
            with_hint("It is deleted.", hint),
            "It is deleted. Check the address."
        );
        assert_eq!(
            with_hint("no sandbox", hint),
            "no sandbox: Check the address."
        );
        assert_eq!(with_hint("no sandbox", None), "no sandbox");
    }

    #[test]
    fn an_answer_has_the_id_of_the_request_and_no_method() {
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
