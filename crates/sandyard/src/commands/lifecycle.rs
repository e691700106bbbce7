//! `sandyard pause`, `resume` and `stop`, for one sandbox or several.

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use sandyard_client::ClientError;
use serde::Serialize;

use crate::global::Global;
use crate::output::{self, Format};

#[derive(Debug, Args)]
pub(crate) struct SandboxesArgs {
    /// IDs or names of the sandboxes
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    format: Format,
}

/// What to do about names that do not exist.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct ForceArgs {
    /// Ignore names that do not exist
    #[arg(long, short)]
    force: bool,
}

impl ForceArgs {
    /// The outcome of a deletion; that there was nothing to delete is a failure only without --force.
    pub(super) fn outcome(self, deleted: Result<(), ClientError>) -> anyhow::Result<()> {
        match deleted {
            Err(error) if self.force && error.status() == Some(404) => Ok(()),
            outcome => Ok(outcome?),
        }
    }

    pub(super) fn is_set(self) -> bool {
        self.force
    }
}

/// What to do with each sandbox.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verb {
    Pause,
    Resume,
    Stop,
}

/// Pauses, resumes or stops each sandbox.
pub(crate) async fn change_state(
    global: &Global,
    verb: Verb,
    args: &SandboxesArgs,
) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    apply_to_each(&args.ids, args.format, async |id| {
        let sandbox = match verb {
            Verb::Pause => client.pause(id).await?,
            Verb::Resume => client.resume(id).await?,
            Verb::Stop => client.stop(id).await?,
        };
        let id = sandbox.sandbox_id.clone();
        Ok((sandbox, id))
    })
    .await
}

/// Applies `action` to each name, in order, and continues after a failure. Prints the lines that it returns, or all values as one
/// JSON array; fails at the end if one of them failed.
pub(super) async fn apply_to_each<T: Serialize>(
    names: &[String],
    format: Format,
    action: impl AsyncFn(&str) -> anyhow::Result<(T, String)>,
) -> anyhow::Result<ExitCode> {
    let mut values = Vec::new();
    for name in names {
        match action(name).await {
            Ok((value, line)) => {
                if !format.json {
                    output::line(line);
                }
                values.push(value);
            }
            Err(error) => output::error(&error),
        }
    }
    if format.json {
        output::json(&values)?;
    }
    match names.len() - values.len() {
        0 => Ok(ExitCode::SUCCESS),
        failed => bail!("{failed} of {} failed", names.len()),
    }
}
