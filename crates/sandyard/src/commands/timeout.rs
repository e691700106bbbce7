//! `sandyard timeout`: how long a sandbox lives without activity.

use std::process::ExitCode;

use clap::Args;
use sandyard_client::SetTimeout;

use super::args::seconds;
use super::show::plain;
use crate::global::Global;
use crate::output::{self, Format};

#[derive(Debug, Args)]
pub(crate) struct TimeoutArgs {
    /// Id or name of a sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// How long, like 90, 30m or 2h; from now on and after every activity
    #[arg(value_name = "TIME", value_parser = seconds)]
    time: u64,
    /// What happens then [default: as before]
    #[arg(long, value_name = "WHAT", value_parser = ["pause", "delete"])]
    action: Option<String>,
    #[command(flatten)]
    format: Format,
}

/// Sets the time and prints when it is over.
pub(crate) async fn timeout(global: &Global, args: &TimeoutArgs) -> anyhow::Result<ExitCode> {
    let timeout = SetTimeout {
        seconds: args.time,
        action: args.action.clone(),
    };
    let answer = global.client()?.set_timeout(&args.id, &timeout).await?;
    match args.format.json {
        true => output::json(&answer)?,
        // One that does not run has no such time yet.
        false => output::line(match plain(&answer["expires_at"]).as_str() {
            "" => "-",
            at => at,
        }),
    }
    Ok(ExitCode::SUCCESS)
}
