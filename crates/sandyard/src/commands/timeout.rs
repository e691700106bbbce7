//! `sandyard timeout`.

use std::process::ExitCode;

use clap::Args;
use sandyard_client::SetTimeout;

use super::args::seconds;
use super::render::plain_text;
use crate::global::Global;
use crate::output::Format;

#[derive(Debug, Args)]
#[command(
    after_help = "Prints the time at which the timeout ends if the sandbox is not used, or - while it does not run.

Examples:
  sandyard timeout build 2h
  sandyard timeout build 30m --action delete"
)]
pub(crate) struct TimeoutArgs {
    /// ID or name of the sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// Idle timeout, for example 90s, 30m or 2h; it starts now and again after every activity
    #[arg(value_name = "DURATION", value_parser = seconds)]
    time: u64,
    /// What to do with the sandbox then [default: unchanged]
    #[arg(long, value_name = "ACTION", value_parser = ["pause", "delete"])]
    action: Option<String>,
    #[command(flatten)]
    format: Format,
}

/// Sets the idle timeout and prints when it expires.
pub(crate) async fn timeout(global: &Global, args: &TimeoutArgs) -> anyhow::Result<ExitCode> {
    let timeout = SetTimeout {
        seconds: args.time,
        action: args.action.clone(),
    };
    let answer = global.client()?.set_timeout(&args.id, &timeout).await?;
    // The timeout of a sandbox that does not run starts when it resumes.
    let expires_at = Some(plain_text(&answer["expires_at"])).filter(|at| !at.is_empty());
    args.format
        .print(&answer, expires_at.as_deref().unwrap_or("-"))
}
