//! `sandyard volume`: folders that outlive sandboxes.

use std::process::ExitCode;

use anyhow::bail;
use clap::Subcommand;
use sandyard_client::{Client, Volume};
use sandyard_core::size::Size;
use serde_json::json;

use super::show::text_of;
use crate::global::Global;
use crate::output::{self, Cell, Format};

#[derive(Debug, Subcommand)]
#[command(
    after_help = "What is written to a volume stays when the sandbox is gone, and several sandboxes can have one at once.

Examples:
  sandyard volume create models
  sandyard create --volume models:/mnt/models
  sandyard volume ls"
)]
pub(crate) enum VolumeCommand {
    /// Make an empty volume
    Create {
        /// Its name: letters, digits, -, _ and .
        name: String,
        #[command(flatten)]
        format: Format,
    },
    /// List your volumes
    #[command(alias = "list")]
    Ls {
        #[command(flatten)]
        format: Format,
    },
    /// Remove volumes and all that is in them; refused while a sandbox has one
    #[command(alias = "delete")]
    Rm {
        /// Their names or ids
        #[arg(required = true)]
        names: Vec<String>,
        #[command(flatten)]
        format: Format,
    },
}

/// Does what was asked for.
pub(crate) async fn volume(global: &Global, command: VolumeCommand) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    match command {
        VolumeCommand::Create { name, format } => {
            let volume = client.create_volume(&name).await?;
            print(&volume, format)?;
        }
        VolumeCommand::Ls { format } => list(&client.volumes().await?, format)?,
        VolumeCommand::Rm { names, format } => {
            return remove(&client, &names, format).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes each and prints its name; goes on after one that fails.
async fn remove(client: &Client, names: &[String], format: Format) -> anyhow::Result<ExitCode> {
    let mut done = Vec::new();
    for name in names {
        match client.delete_volume(name).await {
            Ok(()) => {
                if !format.json {
                    output::line(name);
                }
                done.push(json!({ "name": name }));
            }
            Err(error) => output::error(&error.into()),
        }
    }
    if format.json {
        output::json(&done)?;
    }
    match names.len() - done.len() {
        0 => Ok(ExitCode::SUCCESS),
        failed => bail!("{failed} of {} failed", names.len()),
    }
}

fn print(volume: &Volume, format: Format) -> anyhow::Result<()> {
    if format.json {
        return output::json(volume);
    }
    output::line(&volume.name);
    if output::is_colourful() {
        output::note(format!(
            "try: sandyard create --volume {}:/mnt/{}",
            volume.name, volume.name
        ));
    }
    Ok(())
}

fn list(volumes: &[Volume], format: Format) -> anyhow::Result<()> {
    if format.json {
        return output::json(&volumes);
    }
    let row = |volume: &Volume| {
        vec![
            Cell::from(&volume.name),
            Cell::from(&volume.volume_id),
            Cell::from(Size(volume.size_bytes).to_string()),
            Cell::from(text_of(&volume.other, "created_at")),
        ]
    };
    let rows: Vec<Vec<Cell>> = volumes.iter().map(row).collect();
    output::table(&["NAME", "ID", "SIZE", "CREATED"], &rows);
    Ok(())
}
