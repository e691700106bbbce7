//! `sandyard files`: single files of a sandbox.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use sandyard_client::{Client, FileEntry};
use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::show::{self, text_of};
use crate::global::Global;
use crate::output::{self, Cell, Format};

#[derive(Debug, Args)]
pub(crate) struct FilesArgs {
    /// The user inside to whom new files belong, and whose home relative paths count from [default: user]
    #[arg(long, short, value_name = "NAME", global = true)]
    user: Option<String>,
    #[command(subcommand)]
    command: FilesCommand,
}

#[derive(Debug, Subcommand)]
enum FilesCommand {
    /// List a folder
    Ls {
        #[command(flatten)]
        place: FolderPlace,
        /// How many levels
        #[arg(long, default_value_t = 1)]
        depth: u32,
        #[command(flatten)]
        format: Format,
    },
    /// Print a file
    Cat {
        #[command(flatten)]
        place: FilePlace,
    },
    /// Write standard input to a file
    Write {
        #[command(flatten)]
        place: FilePlace,
        #[command(flatten)]
        format: Format,
    },
    /// Remove a file, or a folder with all that is in it
    Rm {
        #[command(flatten)]
        place: FilePlace,
        #[command(flatten)]
        format: Format,
    },
    /// Move a file or folder
    Mv {
        #[command(flatten)]
        place: FilePlace,
        /// Where to, inside
        to: String,
        #[command(flatten)]
        format: Format,
    },
    /// Make a folder, with those above it
    Mkdir {
        #[command(flatten)]
        place: FilePlace,
        #[command(flatten)]
        format: Format,
    },
    /// Show what is known of a file
    Stat {
        #[command(flatten)]
        place: FilePlace,
        #[command(flatten)]
        format: Format,
    },
}

#[derive(Debug, Args)]
struct FilePlace {
    /// Id or name of a sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// Where inside; a relative path counts from the home
    path: String,
}

#[derive(Debug, Args)]
struct FolderPlace {
    /// Id or name of a sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// Where inside; a relative path counts from the home
    #[arg(default_value = ".")]
    path: String,
}

/// Does what was asked for.
pub(crate) async fn files(global: &Global, args: FilesArgs) -> anyhow::Result<ExitCode> {
    let mut client = global.client()?;
    if let Some(user) = &args.user {
        client = client.with_file_user(user);
    }
    match args.command {
        FilesCommand::Ls {
            place,
            depth,
            format,
        } => {
            let entries = client.list_files(&place.id, &place.path, depth).await?;
            list(&entries, format)?;
        }
        FilesCommand::Cat { place } => cat(&client, &place).await?,
        FilesCommand::Write { place, format } => {
            let input = tokio::io::stdin();
            client.upload(&place.id, &place.path, input, None).await?;
            said(&place.path, format)?;
        }
        FilesCommand::Rm { place, format } => {
            client.remove(&place.id, &place.path).await?;
            said(&place.path, format)?;
        }
        FilesCommand::Mv { place, to, format } => {
            client.rename(&place.id, &place.path, &to).await?;
            said(&to, format)?;
        }
        FilesCommand::Mkdir { place, format } => {
            client.make_folder(&place.id, &place.path).await?;
            said(&place.path, format)?;
        }
        FilesCommand::Stat { place, format } => {
            let entry = client.stat(&place.id, &place.path).await?;
            match format.json {
                true => output::json(&entry)?,
                false => show::whole(&entry)?,
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn said(path: &str, format: Format) -> anyhow::Result<()> {
    match format.json {
        true => output::json(&json!({ "path": path })),
        false => Ok(()),
    }
}

fn list(entries: &[FileEntry], format: Format) -> anyhow::Result<()> {
    if format.json {
        return output::json(&entries);
    }
    let rows: Vec<Vec<Cell>> = entries.iter().map(row).collect();
    output::table(&["MODE", "OWNER", "SIZE", "MODIFIED", "PATH"], &rows);
    Ok(())
}

fn row(entry: &FileEntry) -> Vec<Cell> {
    let other = |name| Cell::from(text_of(&entry.other, name));
    let mark = if entry.is_folder() { "/" } else { "" };
    vec![
        other("permissions"),
        other("owner"),
        Cell::from(entry.size.to_string()),
        other("modified_at"),
        Cell::from(format!("{}{mark}", entry.path)),
    ]
}

async fn cat(client: &Client, place: &FilePlace) -> anyhow::Result<()> {
    let mut content = client.download(&place.id, &place.path).await?;
    let mut stdout = tokio::io::stdout();
    while let Some(chunk) = content.next().await? {
        stdout.write_all(&chunk).await?;
    }
    Ok(stdout.flush().await?)
}
