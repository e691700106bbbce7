//! `sandyard key`: what programs come in with.

use std::process::ExitCode;

use clap::Subcommand;
use sandyard_client::{ApiKey, KeyRequest};
use serde_json::json;

use super::args::seconds;
use super::show::text_of;
use crate::global::Global;
use crate::output::{self, Cell, Format};

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a key; it is printed this once
    Add {
        /// What to call it
        name: String,
        /// For which user; only an admin may name somebody else
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
        /// What it may be used for; may be repeated [default: all its owner may do]
        #[arg(long, value_name = "SCOPE", value_parser = ["read", "use", "manage", "admin"])]
        scope: Vec<String>,
        /// How long it is good for, like 12h or 90d [default: for ever]
        #[arg(long, value_name = "TIME", value_parser = seconds)]
        expires: Option<u64>,
        #[command(flatten)]
        format: Format,
    },
    /// List keys
    Ls {
        #[command(flatten)]
        format: Format,
    },
    /// Revoke a key
    Rm {
        /// Its id, as `sandyard key ls` prints it
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        format: Format,
    },
}

/// Does what was asked for.
pub(crate) async fn key(global: &Global, command: KeyCommand) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    match command {
        KeyCommand::Add {
            name,
            user,
            scope,
            expires,
            format,
        } => {
            let request = KeyRequest {
                name,
                user,
                scopes: scope,
                expires_in: expires,
            };
            let key = client.add_key(&request).await?;
            match format.json {
                true => output::json(&key)?,
                false => output::line(&key.key),
            }
        }
        KeyCommand::Ls { format } => list(&client.keys().await?, format)?,
        KeyCommand::Rm { id, format } => {
            client.remove_key(&id).await?;
            match format.json {
                true => output::json(&json!({ "id": id }))?,
                false => output::line(&id),
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(keys: &[ApiKey], format: Format) -> anyhow::Result<()> {
    if format.json {
        return output::json(&keys);
    }
    let row = |key: &ApiKey| {
        let other = |name| Cell::from(text_of(&key.other, name));
        vec![
            Cell::from(&key.id),
            Cell::from(&key.name),
            Cell::from(&key.owner),
            Cell::from(&key.mask),
            Cell::from(key.scopes.join(",")),
            other("expires_at"),
            other("last_used_at"),
            other("revoked_at"),
        ]
    };
    let headings = [
        "ID",
        "NAME",
        "OWNER",
        "KEY",
        "SCOPES",
        "EXPIRES",
        "LAST USED",
        "REVOKED",
    ];
    let rows: Vec<Vec<Cell>> = keys.iter().map(row).collect();
    output::table(&headings, &rows);
    Ok(())
}
