//! `sandyard files`.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use sandyard_client::Client;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use super::render::{field_text, print_fields};
use crate::global::Global;
use crate::output::{self, Cell, Format};

#[derive(Debug, Args)]
pub(crate) struct FilesArgs {
    /// User in the sandbox that owns new files and whose home directory relative paths start from [default: user]
    #[arg(long, short, value_name = "NAME", global = true)]
    user: Option<String>,
    #[command(subcommand)]
    command: FilesCommand,
}

#[derive(Debug, Subcommand)]
enum FilesCommand {
    /// List a directory
    Ls {
        /// ID or name of the sandbox
        #[arg(value_name = "ID")]
        id: String,
        /// Path in the sandbox; relative to the home directory
        #[arg(default_value = ".")]
        path: String,
        /// Number of levels to list
        #[arg(long, default_value_t = 1)]
        depth: u32,
        #[command(flatten)]
        format: Format,
    },
    /// Print a file
    Cat {
        /// ID or name of the sandbox
        #[arg(value_name = "ID")]
        id: String,
        /// Path in the sandbox; relative to the home directory
        path: String,
    },
    /// Write standard input to a file
    Write(FileArgs),
    /// Delete a file, or a directory with its contents
    Rm(FileArgs),
    /// Move or rename a file or directory
    Mv {
        /// ID or name of the sandbox
        #[arg(value_name = "ID")]
        id: String,
        /// Path in the sandbox; relative to the home directory
        path: String,
        /// New path in the sandbox
        to: String,
        #[command(flatten)]
        format: Format,
    },
    /// Create a directory and its missing parents
    Mkdir(FileArgs),
    /// Show the metadata of a file
    Stat(FileArgs),
}

/// A file in a sandbox, and how to print the answer.
#[derive(Debug, Args)]
struct FileArgs {
    /// ID or name of the sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// Path in the sandbox; relative to the home directory
    path: String,
    #[command(flatten)]
    format: Format,
}

/// Lists, reads or changes files.
pub(crate) async fn files(global: &Global, args: FilesArgs) -> anyhow::Result<ExitCode> {
    let mut client = global.client()?;
    if let Some(user) = &args.user {
        client = client.with_file_user(user);
    }
    let (path, format) = match args.command {
        FilesCommand::Ls {
            id,
            path,
            depth,
            format,
        } => {
            let entries = client.list_files(&id, &path, depth).await?;
            let headings = ["MODE", "OWNER", "SIZE", "MODIFIED", "PATH"];
            return format.print_table(&headings, &entries, |entry| {
                let other = |name| Cell::from(field_text(&entry.other, name));
                let mark = if entry.is_folder() { "/" } else { "" };
                vec![
                    other("permissions"),
                    other("owner"),
                    Cell::from(entry.size.to_string()),
                    other("modified_at"),
                    Cell::from(format!("{}{mark}", entry.path)),
                ]
            });
        }
        FilesCommand::Cat { id, path } => {
            cat(&client, &id, &path).await?;
            return Ok(ExitCode::SUCCESS);
        }
        FilesCommand::Stat(FileArgs { id, path, format }) => {
            let mut entry = client.stat(&id, &path).await?;
            let mode = entry.other.get("mode").and_then(Value::as_u64);
            if let Some(mode) = mode.filter(|_| !format.json) {
                entry
                    .other
                    .insert("mode".to_owned(), format!("{mode:04o}").into());
            }
            return print_fields(&entry, format);
        }
        FilesCommand::Write(FileArgs { id, path, format }) => {
            client.upload(&id, &path, tokio::io::stdin(), None).await?;
            (path, format)
        }
        FilesCommand::Rm(FileArgs { id, path, format }) => {
            client.remove(&id, &path).await?;
            (path, format)
        }
        FilesCommand::Mv {
            id,
            path,
            to,
            format,
        } => {
            client.rename(&id, &path, &to).await?;
            (to, format)
        }
        FilesCommand::Mkdir(FileArgs { id, path, format }) => {
            client.make_folder(&id, &path).await?;
            (path, format)
        }
    };
    if format.json {
        output::json(&json!({ "path": path }))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn cat(client: &Client, id: &str, path: &str) -> anyhow::Result<()> {
    let mut content = client.download(id, path).await?;
    let mut stdout = tokio::io::stdout();
    while let Some(chunk) = content.next().await? {
        stdout.write_all(&chunk).await?;
    }
    Ok(stdout.flush().await?)
}
