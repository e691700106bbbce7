//! `sandyard completions`: what the shell offers when Tab is pressed.

use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

use crate::output;

#[derive(Debug, Args)]
#[command(after_help = "Example: sandyard completions bash > /etc/bash_completion.d/sandyard")]
pub(crate) struct CompletionsArgs {
    /// For which shell
    shell: Shell,
}

/// Prints the script for a shell.
pub(crate) fn completions(args: &CompletionsArgs, mut command: clap::Command) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "sandyard", &mut script);
    output::line(String::from_utf8_lossy(&script).trim_end());
    ExitCode::SUCCESS
}
