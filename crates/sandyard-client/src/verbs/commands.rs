//! Commands without a stream. Never repeated by themselves: nobody knows what a command did the first time.

use reqwest::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::Result;
use crate::client::Client;
use crate::model::{Command, CommandResult, RunCommand, StartedCommand};
use crate::request::Patience;

#[derive(Serialize)]
struct Body<'a> {
    sandbox_id: &'a str,
    command: Value,
    background: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<&'a str>,
    env: &'a std::collections::BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<f64>,
}

/// Whether the answer waits for the command's end.
#[derive(Clone, Copy, PartialEq)]
enum Ground {
    Fore,
    Back,
}

impl Client {
    /// Runs a command to its end. One that fails is no error: look at the exit code.
    ///
    /// # Errors
    ///
    /// When it cannot be started, or ran out of time and was killed.
    pub async fn run(&self, sandbox: &str, command: &RunCommand) -> Result<CommandResult> {
        self.run_command(sandbox, command, Ground::Fore).await
    }

    /// Starts a command and leaves it running; its output goes to the log.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub async fn start(&self, sandbox: &str, command: &RunCommand) -> Result<StartedCommand> {
        self.run_command(sandbox, command, Ground::Back).await
    }

    async fn run_command<T: DeserializeOwned>(
        &self,
        sandbox: &str,
        command: &RunCommand,
        ground: Ground,
    ) -> Result<T> {
        let body = Body {
            sandbox_id: sandbox,
            command: match &command.command {
                Command::Shell(text) => json!(text),
                Command::Argv(words) => json!(words),
            },
            background: ground == Ground::Back,
            cwd: command.cwd.as_deref(),
            env: &command.env,
            user: command.user.as_deref(),
            timeout: command.timeout,
        };
        let request = self
            .request(Method::POST, ["sandboxes", "run-command"])
            .json(&body);
        self.fetch("running a command", Patience::Endless, request)
            .await
    }
}
