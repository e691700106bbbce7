//! `sandyard attach`.

use std::process::ExitCode;

use clap::Args;
use sandyard_client::AttachedProcess;

use super::exec::input::{Input, OnHangup};
use super::exec::session::{self, Session};
use super::exec::size;
use crate::global::Global;

#[derive(Debug, Args)]
#[command(
    after_help = "Prints the buffered output of the process and then follows it. Standard input and Ctrl-C are sent to the process. The \
third Ctrl-C, or closing the terminal, detaches and leaves the process running. For a process that ended in the last \
10 minutes, `attach` prints the rest of its output.

Exit code: the exit code of the process, or 128 plus the number of the signal that killed it; 125 when Sandyard failed.

Examples:
  sandyard attach ID 12
  sandyard attach ID $(sandyard exec --detach ID -- ./build.sh)"
)]
pub(crate) struct AttachArgs {
    /// ID or name of the sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// Process ID, as `exec --detach` prints it
    #[arg(value_name = "PID")]
    pid: u32,
}

/// Attaches to a process and exits with its exit code.
pub(crate) async fn attach(global: &Global, args: AttachArgs) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    let AttachedProcess {
        mut exec,
        has_terminal,
    } = client.attach(&args.id, args.pid).await?;
    if has_terminal {
        exec.input.resize(size()).await?;
    }
    let session = Session {
        has_terminal,
        input: Input::Attached,
        on_hangup: OnHangup::Detach,
        has_started: true,
    };
    session::run(exec, session).await
}
