//! `sandyard selftest`.

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Args;
use sandyard_probe::{Paint, render};

use crate::global::Global;
use crate::output::{self, Format};
use crate::selftest;

#[derive(Debug, Args)]
#[command(after_help = "Exit code: 0 when every check held, 1 when a check was breached.")]
pub(crate) struct SelftestArgs {
    /// Run the escape checks in sandboxes on this host
    #[arg(long, required = true)]
    escape: bool,
    #[command(flatten)]
    format: Format,
}

/// Runs the checks and prints the report.
pub(crate) async fn selftest(global: &Global, args: SelftestArgs) -> anyhow::Result<ExitCode> {
    let data_dir = std::path::absolute(global.data_dir())?;
    let suite = selftest::run(&global.engine().await?, &data_dir).await?;
    if args.format.json {
        output::json(&suite)?;
    } else {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let paint = if colour { Paint::Colour } else { Paint::Plain };
        output::line(render(&suite, paint).trim_end());
    }
    Ok(if suite.is_held() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
