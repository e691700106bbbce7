//! `sandyard pause`, `resume` and `stop`: the same for one sandbox or many.

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use sandyard_client::Client;
use serde_json::Value;

use super::show::plain;
use crate::global::Global;
use crate::output::{self, Format};

#[derive(Debug, Args)]
pub(crate) struct ManyArgs {
    /// Ids or names of sandboxes
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    format: Format,
}

/// What to do to each of them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verb {
    Pause,
    Resume,
    Stop,
}

impl Verb {
    async fn apply(self, client: &Client, id: &str) -> anyhow::Result<Value> {
        let sandbox = match self {
            Self::Pause => client.pause(id).await?,
            Self::Resume => client.resume(id).await?,
            Self::Stop => client.stop(id).await?,
        };
        Ok(serde_json::to_value(sandbox)?)
    }
}

/// Does it to each and prints its id; goes on after one that fails.
pub(crate) async fn each(global: &Global, verb: Verb, args: &ManyArgs) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    let mut done = Vec::new();
    for id in &args.ids {
        match verb.apply(&client, id).await {
            Ok(sandbox) => {
                if !args.format.json {
                    output::line(plain(&sandbox["sandbox_id"]));
                }
                done.push(sandbox);
            }
            Err(error) => output::error(&error),
        }
    }
    if args.format.json {
        output::json(&done)?;
    }
    match args.ids.len() - done.len() {
        0 => Ok(ExitCode::SUCCESS),
        failed => bail!("{failed} of {} failed", args.ids.len()),
    }
}
