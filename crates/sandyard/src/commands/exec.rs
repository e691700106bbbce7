//! `sandyard exec`: a command in a sandbox, with its terminal or pipes as ours.

pub(super) mod input;
pub(super) mod session;

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use sandyard_client::{Client, Command, ExecRequest, RunCommand, TerminalSize};

use self::input::{Input, OnHangUp};
use self::session::Session;
use super::args::{pair, some_seconds};
use super::terminal::terminal_size;
use crate::global::Global;
use crate::output::{self, Format};

#[derive(Debug, Args)]
#[command(
    after_help = "Exit code: that of the command, or 128 and the number of the signal that ended it; 124 when it ran
out of time, 125 when Sandyard failed, 127 when it could not be started, 2 when the options are wrong.

Ctrl-C goes to the command; the third one leaves it alone.

When the connection is lost or the server restarts, the command runs on, and `exec` reconnects to it for up to 5 minutes.
After that, `sandyard attach` shows it.

Examples:
  sandyard exec ID -- python3 -c 'print(6*7)'
  sandyard exec -it ID -- bash
  echo hello | sandyard exec -i ID -- tee note.txt
  sandyard exec --detach ID -- python3 -m http.server 8000"
)]
pub(crate) struct ExecArgs {
    /// Pass standard input on
    #[arg(long, short)]
    interactive: bool,
    /// Run in a terminal, standard input included
    #[arg(long, short)]
    tty: bool,
    /// User inside, like user or root [default: user]
    #[arg(long, short, value_name = "NAME")]
    user: Option<String>,
    /// Working directory inside [default: the home of the user]
    #[arg(long, short = 'w', value_name = "DIR")]
    cwd: Option<String>,
    /// Set a variable for the command; may be repeated
    #[arg(long, short, value_name = "NAME=VALUE", value_parser = pair)]
    env: Vec<(String, String)>,
    /// End the command and all it started after this time, like 90 or 10m
    #[arg(long, value_name = "TIME", value_parser = some_seconds)]
    timeout: Option<f64>,
    /// Leave it running, print its process id; its output goes to `sandyard logs`
    #[arg(long, short, conflicts_with_all = ["interactive", "tty"])]
    detach: bool,
    /// Wait for the end and print output and exit code as JSON
    #[arg(long, conflicts_with_all = ["interactive", "tty"])]
    json: bool,
    /// Id or name of a sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs the command. The exit code is the command's.
pub(crate) async fn exec(global: &Global, args: ExecArgs) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    if args.detach {
        return detach(&client, &args).await;
    }
    if args.json {
        return collect(&client, &args).await;
    }
    let exec = client.exec(&args.id, &args.exec_request()).await?;
    let input = match (args.tty, args.interactive) {
        (true, _) => Input::Terminal,
        (false, true) => Input::Pipe,
        (false, false) => Input::Nothing,
    };
    let session = Session {
        has_terminal: args.tty,
        input,
        on_hang_up: OnHangUp::Forward,
        has_started: false,
    };
    session::run(exec, session).await
}

async fn detach(client: &Client, args: &ExecArgs) -> anyhow::Result<ExitCode> {
    let started = client.start(&args.id, &args.run_command()).await?;
    let format = Format { json: args.json };
    match format.json {
        true => output::json(&started)?,
        false => output::line(started.process_id.to_string()),
    }
    Ok(ExitCode::SUCCESS)
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
            return Ok(ExitCode::from(session::TIMED_OUT));
        }
        other => other?,
    };
    output::json(&result)?;
    Ok(session::exit_code(result.exit_code))
}

impl ExecArgs {
    #[cfg(test)]
    pub(crate) fn words(&self) -> &[String] {
        &self.command
    }

    fn variables(&self) -> BTreeMap<String, String> {
        self.env.iter().cloned().collect()
    }

    fn run_command(&self) -> RunCommand {
        RunCommand {
            cwd: self.cwd.clone(),
            env: self.variables(),
            user: self.user.clone(),
            timeout: self.timeout,
            ..RunCommand::argv(self.command.clone())
        }
    }

    fn exec_request(&self) -> ExecRequest {
        let mut env = self.variables();
        if self.tty {
            let term = std::env::var("TERM").unwrap_or_else(|_| "xterm-256color".to_owned());
            env.entry("TERM".to_owned()).or_insert(term);
        }
        ExecRequest {
            tty: self.tty.then(size),
            cwd: self.cwd.clone(),
            env,
            user: self.user.clone(),
            timeout: self.timeout,
            ..ExecRequest::new(Command::Argv(self.command.clone()))
        }
    }
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
