//! `sandyard shell`.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use clap::Args;
use sandyard_client::{Command, ExecRequest};

use super::exec::input::{Input, OnHangup};
use super::exec::session::{self, Session};
use super::exec::{prompt_variables, size};
use crate::global::Global;

/// Starts the best shell that the sandbox has.
const SHELL: &str = "if command -v bash >/dev/null; then exec bash -l; else exec sh -l; fi";

#[derive(Debug, Args)]
#[command(
    after_help = "Without a terminal on standard input, the shell reads commands from there.

Exit code: the exit code of the shell; 125 when Sandyard failed."
)]
pub(crate) struct ShellArgs {
    /// ID or name of the sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// User in the sandbox that runs the shell, for example root [default: user]
    #[arg(long, short, value_name = "NAME")]
    user: Option<String>,
    /// Working directory in the sandbox [default: the user's home directory]
    #[arg(long, short = 'w', value_name = "DIR")]
    cwd: Option<String>,
}

/// Opens a shell and exits with its exit code.
pub(crate) async fn shell(global: &Global, args: ShellArgs) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    let has_terminal = std::io::stdin().is_terminal();
    let mut request = ExecRequest {
        tty: has_terminal.then(size),
        cwd: args.cwd,
        user: args.user,
        ..ExecRequest::new(Command::Argv(["sh", "-c", SHELL].map(str::to_owned).into()))
    };
    if has_terminal {
        request.env = prompt_variables(&client, &args.id).await?;
    }
    let exec = client.exec(&args.id, &request).await?;
    let session = Session {
        has_terminal,
        input: match has_terminal {
            true => Input::Terminal,
            false => Input::Pipe,
        },
        on_hangup: OnHangup::Forward,
        has_started: false,
    };
    session::run(exec, session).await
}
