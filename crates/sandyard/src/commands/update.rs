//! `sandyard update`.

use std::process::ExitCode;

use clap::{ArgGroup, Args};
use sandyard_client::{SetTimeout, UpdateSandbox};

use super::args::{pair, seconds};
use crate::global::Global;
use crate::output::Format;

#[derive(Debug, Args)]
#[command(
    override_usage = "sandyard update [OPTIONS] <ID>",
    group = ArgGroup::new("change").required(true).multiple(true).args(["name", "metadata", "remove_metadata", "timeout"]),
    after_help = "What is not named stays. `sandyard network` changes the egress policy. Limits are fixed when a sandbox is created.

Examples:
  sandyard update ID --name build-2
  sandyard update ID --metadata ticket=43 --remove-metadata owner
  sandyard update ID --timeout 2h --timeout-action delete"
)]
pub(crate) struct UpdateArgs {
    /// ID or name of the sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// New name of the sandbox; '' removes the name. Its host name stays
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Metadata to set; repeatable. Other metadata stays
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    metadata: Vec<(String, String)>,
    /// Metadata to remove; repeatable
    #[arg(long, value_name = "NAME")]
    remove_metadata: Vec<String>,
    /// Idle timeout, for example 90s, 30m or 2h
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    timeout: Option<u64>,
    /// What to do with the sandbox when it times out [default: unchanged]
    #[arg(long, value_name = "ACTION", value_parser = ["pause", "delete"], requires = "timeout")]
    timeout_action: Option<String>,
    #[command(flatten)]
    format: Format,
}

/// Changes a sandbox and prints its ID.
pub(crate) async fn update(global: &Global, args: UpdateArgs) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    let removed = args.remove_metadata.into_iter().map(|name| (name, None));
    let set = args
        .metadata
        .into_iter()
        .map(|(name, value)| (name, Some(value)));
    let changes = UpdateSandbox {
        alias: args
            .name
            .map(|name| Some(name).filter(|name| !name.is_empty())),
        metadata: removed.chain(set).collect(),
    };
    // By its ID from now on, since its name may change.
    let id = client.inspect(&args.id).await?.sandbox_id;
    if changes != UpdateSandbox::default() {
        client.update(&id, &changes).await?;
    }
    if let Some(seconds) = args.timeout {
        let timeout = SetTimeout {
            seconds,
            action: args.timeout_action,
        };
        client.set_timeout(&id, &timeout).await?;
    }
    let sandbox = client.inspect(&id).await?;
    args.format.print(&sandbox, &sandbox.sandbox_id)
}
