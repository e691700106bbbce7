//! `sandyard volume`.

use std::process::ExitCode;

use clap::Subcommand;
use sandyard_core::size::Size;
use serde_json::json;

use super::cp::{VolumeCpArgs, copy_volume};
use super::lifecycle::{ForceArgs, apply_to_each};
use super::render::field_text;
use crate::global::Global;
use crate::output::{self, Cell, Format};

#[derive(Debug, Subcommand)]
#[command(
    after_help = "A volume keeps its files when sandboxes are deleted. Several sandboxes can mount the same volume at once.

Examples:
  sandyard volume create models
  sandyard create --volume models:/mnt/models
  sandyard volume cp ./weights models:"
)]
pub(crate) enum VolumeCommand {
    /// Create an empty volume
    Create {
        /// Name of the volume, with letters, digits and the characters . - _ only
        name: String,
        #[command(flatten)]
        format: Format,
    },
    /// List your volumes
    Ls(Format),
    /// Copy files and directories from and to volumes
    Cp(VolumeCpArgs),
    /// Delete volumes and their files; fails while a sandbox mounts one of them
    Rm {
        /// Names or IDs of the volumes
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        #[command(flatten)]
        force: ForceArgs,
        #[command(flatten)]
        format: Format,
    },
}

/// Creates, lists or deletes volumes.
pub(crate) async fn volume(global: &Global, command: VolumeCommand) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    match command {
        VolumeCommand::Create { name, format } => {
            let volume = client.create_volume(&name).await?;
            format.print(&volume, &volume.name)?;
            if !format.json && output::use_colour() {
                let name = &volume.name;
                output::note(format!("try: sandyard create --volume {name}:/mnt/{name}"));
            }
            Ok(ExitCode::SUCCESS)
        }
        VolumeCommand::Ls(format) => {
            let volumes = client.volumes().await?;
            format.print_table(&["NAME", "ID", "SIZE", "CREATED"], &volumes, |volume| {
                vec![
                    Cell::from(&volume.name),
                    Cell::from(&volume.volume_id),
                    Cell::from(Size(volume.size_bytes).readable()),
                    Cell::from(output::ago(&field_text(&volume.other, "created_at"))),
                ]
            })
        }
        VolumeCommand::Cp(args) => copy_volume(global, args).await,
        VolumeCommand::Rm {
            names,
            force,
            format,
        } => {
            apply_to_each(&names, format, async |name| {
                force.outcome(client.delete_volume(name).await)?;
                Ok((json!({ "name": name }), name.to_owned()))
            })
            .await
        }
    }
}
