//! `sandyard exec`.

pub(super) mod input;
pub(super) mod session;

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use sandyard_client::{Client, Command, ExecRequest, RunCommand, TerminalSize};

use self::input::{Input, OnHangup};
use self::session::Session;
use super::args::CommandArgs;
use super::exit_code::{KILLED, NOT_STARTED, TIMED_OUT};
use super::terminal::terminal_size;
use crate::global::Global;
use crate::output::{self, Format};

#[derive(Debug, Args)]
#[command(
    after_help = "Exit code: the command's exit code, or 128 plus the number of the signal that killed it; 124 when the command timed out, \
125 when Sandyard failed, 127 when the command could not be started, 2 when an option is wrong.

Ctrl-C is sent to the command. The third Ctrl-C ends `exec` and leaves the command running.

If the connection is lost or the server restarts, the command keeps running and `exec` tries to reconnect for 5 minutes. \
After that, use `sandyard attach`.

Examples:
  sandyard exec ID -- python3 -c 'print(6*7)'
  sandyard exec -it ID -- bash
  echo hello | sandyard exec -i ID -- tee note.txt
  sandyard exec --detach ID -- python3 -m http.server 8000"
)]
pub(crate) struct ExecArgs {
    #[command(flatten)]
    options: CommandArgs,
    /// Run in the background and print the process ID; `sandyard logs` shows the output
    #[arg(long, short, conflicts_with_all = ["interactive", "tty"])]
    detach: bool,
    /// Wait for the command to end, then print its output and exit code as JSON
    #[arg(long, conflicts_with_all = ["interactive", "tty"])]
    json: bool,
    /// ID or name of the sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// Command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs the command and exits with its exit code.
pub(crate) async fn exec(global: &Global, args: ExecArgs) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    if args.detach {
        return detach(&client, &args).await;
    }
    if args.json {
        return collect(&client, &args).await;
    }
    let mut request = args.exec_request();
    if args.options.tty {
        for (name, value) in prompt_variables(&client, &args.id).await? {
            request.env.entry(name).or_insert(value);
        }
    }
    let exec = client.exec(&args.id, &request).await?;
    let input = match (args.options.tty, args.options.interactive) {
        (true, _) => Input::Terminal,
        (false, true) => Input::Pipe,
        (false, false) => Input::Nothing,
    };
    let session = Session {
        has_terminal: args.options.tty,
        input,
        on_hangup: OnHangup::Forward,
        has_started: false,
    };
    let code = session::run(exec, session).await?;
    explain(&client, &args, code).await;
    Ok(code)
}

/// Says what a failed command may be due to.
async fn explain(client: &Client, args: &ExecArgs, code: ExitCode) {
    if code == ExitCode::from(NOT_STARTED) && is_shell_text(&args.command) {
        output::note(format!(
            "hint: a shell runs a command line: sandyard exec {} -- sh -c '{}'",
            args.id, args.command[0]
        ));
    }
    if code == ExitCode::from(KILLED)
        && let Ok(metrics) = client.metrics(&args.id).await
        && metrics
            .other
            .get("oom_kills")
            .and_then(serde_json::Value::as_u64)
            > Some(0)
    {
        output::note(format!(
            "note: the sandbox ran out of memory; `sandyard info {}` shows its limit",
            args.id
        ));
    }
}

/// Whether a command is a line for a shell in one word, as in `exec ID "a | b"`.
fn is_shell_text(command: &[String]) -> bool {
    matches!(command, [text] if text.contains(' ') && !text.contains('\''))
}

async fn detach(client: &Client, args: &ExecArgs) -> anyhow::Result<ExitCode> {
    let started = client.start(&args.id, &args.run_command()).await?;
    Format { json: args.json }.print(&started, started.process_id.to_string())
}

async fn collect(client: &Client, args: &ExecArgs) -> anyhow::Result<ExitCode> {
    let result = client.run(&args.id, &args.run_command()).await;
    let result = match result {
        Err(error) if error.code() == Some("timed_out") => {
            if let Some(partial) = error.partial_output() {
                output::json(&serde_json::json!({
                    "stdout": partial.stdout,
                    "stderr": partial.stderr,
                    "truncated": partial.is_truncated,
                    "process_id": partial.pid,
                    "exit_code": null,
                    "timed_out": true,
                }))?;
            }
            output::error(&error.into());
            return Ok(ExitCode::from(TIMED_OUT));
        }
        other => other?,
    };
    output::json(&result)?;
    Ok(session::exit_code(result.exit_code))
}

impl ExecArgs {
    #[cfg(test)]
    pub(crate) fn command(&self) -> &[String] {
        &self.command
    }

    fn run_command(&self) -> RunCommand {
        RunCommand {
            cwd: self.options.cwd.clone(),
            env: self.options.variables(),
            user: self.options.user.clone(),
            timeout: self.options.timeout,
            ..RunCommand::argv(self.command.clone())
        }
    }

    fn exec_request(&self) -> ExecRequest {
        ExecRequest {
            tty: self.options.tty.then(size),
            cwd: self.options.cwd.clone(),
            env: self.options.variables(),
            user: self.options.user.clone(),
            timeout: self.options.timeout,
            ..ExecRequest::new(Command::Argv(self.command.clone()))
        }
    }
}

/// Variables of a shell in a terminal: its type, and what makes bash show the sandbox's name in the prompt. The host name is an ID
/// that the user never saw.
pub(super) async fn prompt_variables(
    client: &Client,
    id: &str,
) -> anyhow::Result<BTreeMap<String, String>> {
    let sandbox = client.inspect(id).await?;
    let name = sandbox.alias.unwrap_or(sandbox.sandbox_id);
    let term = std::env::var("TERM").unwrap_or_else(|_| "xterm-256color".to_owned());
    let mut variables = BTreeMap::from([("TERM".to_owned(), term)]);
    // Bash evaluates this before each prompt.
    if name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    {
        let command = format!("PS1=\"${{PS1//\\\\h/{name}}}\"");
        variables.insert("PROMPT_COMMAND".to_owned(), command);
    }
    Ok(variables)
}

/// The size of the user's terminal.
pub(super) fn size() -> TerminalSize {
    let size = terminal_size();
    let side = |cells: u32| u16::try_from(cells.clamp(1, 4096)).unwrap_or(80);
    TerminalSize {
        cols: side(size.cols),
        rows: side(size.rows),
    }
}
