//! `sandyard key`.

use std::process::ExitCode;

use clap::Subcommand;
use sandyard_client::KeyRequest;
use serde_json::json;

use super::args::seconds;
use super::render::field_text;
use crate::global::Global;
use crate::output::{self, Cell, Format};

#[derive(Debug, Subcommand)]
#[command(
    after_help = "Programs send a key in the header `Authorization: Bearer KEY`; this program takes it from SANDYARD_API_KEY or `sandyard login`.

Examples:
  sandyard key add laptop
  sandyard key add ci --scope use --expires 90d
  sandyard key ls"
)]
pub(crate) enum KeyCommand {
    /// Create an API key and print it; it cannot be printed again
    Add {
        /// Name of the key
        name: String,
        /// Owner of the key; admins can name another user [default: you]
        #[arg(long, value_name = "NAME")]
        user: Option<String>,
        /// Restrict the key to a scope; repeatable [default: everything its owner may do]
        #[arg(long, value_name = "SCOPE", value_parser = ["read", "use", "manage", "admin"])]
        scope: Vec<String>,
        /// Time until the key expires, for example 12h or 90d [default: never]
        #[arg(long, value_name = "DURATION", value_parser = seconds)]
        expires: Option<u64>,
        #[command(flatten)]
        format: Format,
    },
    /// List API keys
    Ls(Format),
    /// Revoke an API key
    Rm {
        /// ID of the key, as `sandyard key ls` prints it
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        format: Format,
    },
}

/// Creates, lists or revokes API keys.
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
            format.print(&key, &key.key)
        }
        KeyCommand::Ls(format) => {
            let headings = [
                "ID",
                "NAME",
                "OWNER",
                "SCOPES",
                "REVOKED",
                "LAST USED",
                "EXPIRES",
                "KEY",
            ];
            format.print_fitted(&headings, 5, &client.keys().await?, |key| {
                let ago = |name| Cell::from(output::ago(&field_text(&key.other, name)));
                vec![
                    Cell::from(&key.id),
                    Cell::from(&key.name),
                    Cell::from(&key.owner),
                    Cell::from(key.scopes.join(",")),
                    ago("revoked_at"),
                    ago("last_used_at"),
                    Cell::from(output::clock_time(&field_text(&key.other, "expires_at"))),
                    Cell::from(&key.mask),
                ]
            })
        }
        KeyCommand::Rm { id, format } => {
            client.remove_key(&id).await?;
            format.print(&json!({ "id": id }), &id)
        }
    }
}
