//! `sandyard attach`: a process that runs already, with its terminal or pipes as ours.

use std::process::ExitCode;

use clap::Args;
use sandyard_client::AttachedProcess;

use super::exec::input::{Input, OnHangUp};
use super::exec::session::{self, Session};
use super::exec::size;
use crate::global::Global;

#[derive(Debug, Args)]
#[command(
    after_help = "Prints the output that the sandbox still keeps, then follows. Standard input and Ctrl-C go to the process;
the third Ctrl-C leaves it running, and so does closing the terminal. A process that ended within the last
10 minutes prints the rest of its output.

Exit code: that of the process, or 128 and the number of the signal that ended it; 125 when Sandyard failed.

Examples:
  sandyard attach ID 12
  sandyard attach ID $(sandyard exec --detach ID -- ./build.sh)"
)]
pub(crate) struct AttachArgs {
    /// Id or name of a sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// Process id, as `exec --detach` prints it
    #[arg(value_name = "PID")]
    pid: u32,
}

/// Attaches to the process. The exit code is the process's.
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
        on_hang_up: OnHangUp::Leave,
        has_started: true,
    };
    session::run(exec, session).await
}
