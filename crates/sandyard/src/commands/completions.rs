//! `sandyard completions`.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use clap_complete::Shell;
use clap_complete::env::Shells;

use crate::output;

/// The variable with which a shell asks this program for candidates.
pub(crate) const VARIABLE: &str = "SANDYARD_COMPLETE";

#[derive(Debug, Args)]
#[command(
    after_help = "The script asks `sandyard` for candidates, so it completes the names of sandboxes and templates too.

Examples:
  sandyard completions bash > /etc/bash_completion.d/sandyard
  sandyard completions zsh > \"${fpath[1]}/_sandyard\"
  sandyard completions fish > ~/.config/fish/completions/sandyard.fish"
)]
pub(crate) struct CompletionsArgs {
    /// Shell to generate the script for
    shell: Shell,
}

/// Prints the completion script of a shell.
pub(crate) fn completions(args: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    let name = args.shell.to_string();
    let shells = Shells::builtins();
    let shell = shells.completer(&name).context("the shell is not known")?;
    let mut script = Vec::new();
    shell
        .write_registration(VARIABLE, "sandyard", "sandyard", "sandyard", &mut script)
        .context("generating the script")?;
    output::line(String::from_utf8_lossy(&script).trim_end());
    Ok(ExitCode::SUCCESS)
}
