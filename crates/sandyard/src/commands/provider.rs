//! `sandyard provider`.

use std::process::ExitCode;

use clap::Subcommand;
use sandyard_client::Provider;

use super::render::field_text;
use crate::global::Global;
use crate::output::{self, Cell, Format};

#[derive(Debug, Subcommand)]
pub(crate) enum ProviderCommand {
    /// List providers with their health and capabilities, the default provider first
    Ls(Format),
    /// List orphans: instances at the providers that the server's database does not know
    #[command(
        alias = "unknown",
        after_help = "Orphans appear when an older backup of the database is restored. The server never removes them automatically."
    )]
    Orphans {
        #[command(flatten)]
        format: Format,
        /// Delete this orphan and its files
        #[arg(long, value_name = "ID")]
        rm: Option<String>,
    },
}

/// Lists providers or orphans, or deletes an orphan.
pub(crate) async fn provider(
    global: &Global,
    command: ProviderCommand,
) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    match command {
        ProviderCommand::Ls(format) => {
            let headings = ["NAME", "STATUS", "SINCE", "REASON", "CAPABILITIES"];
            let providers = client.server_info().await?.providers;
            format.print_fitted(&headings, 4, &providers, |provider| {
                vec![
                    Cell::from(&provider.name),
                    Cell::from(&provider.status),
                    Cell::from(output::ago(provider.since.as_deref().unwrap_or_default())),
                    Cell::from(provider.reason.as_deref().unwrap_or_default()),
                    Cell::from(capabilities(provider)),
                ]
            })
        }
        ProviderCommand::Orphans { rm: Some(id), .. } => {
            client.delete_unknown_instance(&id).await?;
            output::line(id);
            Ok(ExitCode::SUCCESS)
        }
        ProviderCommand::Orphans { format, rm: None } => {
            let headings = ["ID", "PROVIDER", "STATE", "SANDBOX", "CREATED"];
            let orphans = client.unknown_instances().await?;
            format.print_table(&headings, &orphans, |orphan| {
                vec![
                    Cell::from(&orphan.id),
                    Cell::from(&orphan.provider),
                    Cell::from(&orphan.state),
                    Cell::from(orphan.sandbox_id.as_deref().unwrap_or_default()),
                    Cell::from(field_text(&orphan.other, "created_at")),
                ]
            })
        }
    }
}

/// The names of the capabilities that a provider has.
fn capabilities(provider: &Provider) -> String {
    let available = provider.capabilities.iter().filter(|(_, has)| **has);
    let names: Vec<&str> = available.map(|(name, _)| name.as_str()).collect();
    names.join(" ")
}
