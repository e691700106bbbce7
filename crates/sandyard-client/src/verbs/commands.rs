//! Commands without a stream. They are never retried, since a lost response does not tell whether the command ran.

use reqwest::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::wrapped::Wrapped;
use crate::Result;
use crate::client::Client;
use crate::model::{Command, CommandResult, Process, RunCommand, StartedCommand};
use crate::request::TimeLimit;

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

/// Whether the response waits for the end of the command.
#[derive(Clone, Copy, PartialEq)]
enum RunMode {
    Foreground,
    Background,
}

impl Client {
    /// Runs a command and waits for its end. A non-zero exit code is not an error.
    ///
    /// # Errors
    ///
    /// If the command cannot be started, or exceeded its timeout and was killed.
    pub async fn run(&self, sandbox: &str, command: &RunCommand) -> Result<CommandResult> {
        self.run_command(sandbox, command, RunMode::Foreground)
            .await
    }

    /// Starts a command in the background. Its output goes to the log.
    ///
    /// # Errors
    ///
    /// If the command cannot be started.
    pub async fn start(&self, sandbox: &str, command: &RunCommand) -> Result<StartedCommand> {
        self.run_command(sandbox, command, RunMode::Background)
            .await
    }

    /// Lists the running commands of a sandbox that were started through the API.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist or cannot run.
    pub async fn processes(&self, sandbox: &str) -> Result<Vec<Process>> {
        let operation = "listing commands";
        let answer: Wrapped = self
            .get(operation, ["sandboxes", sandbox, "processes"])
            .await?;
        Ok(answer.page(operation, "processes")?.items)
    }

    /// Sends a signal, for example `TERM`, to a running command.
    ///
    /// # Errors
    ///
    /// If the command does not run, or the signal does not exist.
    pub async fn kill_process(&self, sandbox: &str, pid: u32, signal: &str) -> Result<()> {
        let pid = pid.to_string();
        let request = self
            .request(
                Method::POST,
                ["sandboxes", sandbox, "processes", &pid, "kill"],
            )
            .query(&[("signal", signal)]);
        self.send("sending a signal", TimeLimit::Short, request)
            .await?;
        Ok(())
    }

    async fn run_command<T: DeserializeOwned>(
        &self,
        sandbox: &str,
        command: &RunCommand,
        mode: RunMode,
    ) -> Result<T> {
        let body = Body {
            sandbox_id: sandbox,
            command: match &command.command {
                Command::Shell(text) => json!(text),
                Command::Argv(words) => json!(words),
            },
            background: mode == RunMode::Background,
            cwd: command.cwd.as_deref(),
            env: &command.env,
            user: command.user.as_deref(),
            timeout: command.timeout,
        };
        let request = self
            .request(Method::POST, ["sandboxes", "run-command"])
            .json(&body);
        self.fetch("running a command", TimeLimit::Unlimited, request)
            .await
    }
}
