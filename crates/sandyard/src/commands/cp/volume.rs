//! `sandyard volume cp`: copies through a sandbox that exists only for it.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use sandyard_client::CreateSandbox;
use serde_json::json;

use super::{Location, copy_all};
use crate::global::Global;
use crate::output::{self, Format};

/// Where the volumes are in the sandbox.
const MOUNTS: &str = "/mnt/";
/// If this program is killed, the server deletes the sandbox after this time without a copy, in seconds.
const TIMEOUT_S: u64 = 60;

#[derive(Debug, Args)]
#[command(
    override_usage = "sandyard volume cp [OPTIONS] SOURCE... TARGET",
    after_help = "A path in a volume is written as VOLUME:PATH, with the name of the volume, or with its ID if the name has a dot. The rest is as in `sandyard cp`. The volume may be \
in use by sandboxes; a temporary sandbox copies the files.

Examples:
  sandyard volume cp ./weights models:
  sandyard volume cp models:weights/config.json .
  sandyard volume cp models:weights archive:2026"
)]
pub(crate) struct VolumeCpArgs {
    /// Files or directories to copy, and where to copy them
    #[arg(required = true, num_args = 2.., value_name = "PATH")]
    volume_paths: Vec<Location>,
    /// User that owns new files in the volume [default: user]
    #[arg(long, short, value_name = "NAME")]
    user: Option<String>,
    /// Do not show progress
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    format: Format,
}

/// Copies from and to volumes.
pub(crate) async fn copy(global: &Global, args: VolumeCpArgs) -> anyhow::Result<ExitCode> {
    let mut client = global.client()?;
    let mut volumes = BTreeSet::new();
    for path in &args.volume_paths {
        if let Location::Sandbox { id, .. } = path {
            volumes.insert(id.clone());
        }
    }
    if volumes.is_empty() {
        bail!("neither source nor target is in a volume: write one as VOLUME:PATH");
    }
    let mounts = volumes
        .into_iter()
        .map(|name| (format!("{MOUNTS}{name}"), name));
    let request = CreateSandbox {
        volumes: mounts.collect(),
        timeout: Some(TIMEOUT_S),
        timeout_action: Some("delete".to_owned()),
        metadata: [("purpose".to_owned(), "volume cp".to_owned())].into(),
        ..CreateSandbox::default()
    };
    let sandbox = client.create(&request).await?.sandbox_id;
    let paths = args.volume_paths.into_iter();
    let paths = paths.map(|path| in_sandbox(path, &sandbox)).collect();
    let deleting = client.clone();
    if let Some(user) = &args.user {
        client = client.with_file_user(user);
    }
    let outcome = tokio::select! {
        outcome = copy_all(&client, paths, !args.quiet && !args.format.json) => outcome,
        _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
    };
    let deleted = deleting.delete(&sandbox).await;
    let all = outcome?;
    deleted?;
    let mounts = format!("{sandbox}:{MOUNTS}");
    for copied in all {
        if args.format.json && copied.to != "-" {
            let path = match copied.to.strip_prefix(&mounts) {
                Some(path) => path.replacen('/', ":", 1),
                None => copied.to,
            };
            output::json(&json!({ "path": path, "bytes": copied.bytes }))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The path in the sandbox that has the volume.
fn in_sandbox(path: Location, sandbox: &str) -> Location {
    match path {
        Location::Sandbox { id, path } => Location::Sandbox {
            id: sandbox.to_owned(),
            // The volume itself is written as `VOLUME:`.
            path: match path.trim_start_matches('/') {
                "" | "." => format!("{MOUNTS}{id}"),
                path => format!("{MOUNTS}{id}/{path}"),
            },
        },
        path => path,
    }
}
