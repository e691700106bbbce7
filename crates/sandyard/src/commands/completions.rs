//! `sandyard completions`.

use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "Example: sandyard completions bash > /etc/bash_completion.d/sandyard")]
pub(crate) struct CompletionsArgs {
    /// Shell to generate the script for
    shell: Shell,
}

/// Prints the completion script of a shell.
pub(crate) fn completions(args: &CompletionsArgs, mut command: clap::Command) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "sandyard", &mut script);
    output::line(String::from_utf8_lossy(&script).trim_end());
    ExitCode::SUCCESS
}
