//! `sandyard provider`: where sandboxes run.

use std::process::ExitCode;

use clap::Subcommand;
use sandyard_client::{Provider, UnknownInstance};

use super::show::text_of;
use crate::global::Global;
use crate::output::{self, Cell, Format};

#[derive(Debug, Subcommand)]
pub(crate) enum ProviderCommand {
    /// List the server's providers, whether they answer, and what they can do; the default one first
    Ls {
        #[command(flatten)]
        format: Format,
    },
    /// List what is with the providers and unknown to the server's database, as after an older one was restored
    Unknown {
        #[command(flatten)]
        format: Format,
        /// Remove this one, with all that is in it
        #[arg(long, value_name = "ID")]
        rm: Option<String>,
    },
}

/// Lists providers, or what is with them that nobody knows.
pub(crate) async fn provider(
    global: &Global,
    command: ProviderCommand,
) -> anyhow::Result<ExitCode> {
    let format = match command {
        ProviderCommand::Ls { format } => format,
        ProviderCommand::Unknown { format, rm } => return unknown(global, format, rm).await,
    };
    let providers = global.client()?.server_info().await?.providers;
    if format.json {
        output::json(&providers)?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |provider: &Provider| {
        vec![
            Cell::from(&provider.name),
            Cell::from(&provider.status),
            Cell::from(provider.since.clone().unwrap_or_default()),
            Cell::from(able(provider)),
            Cell::from(provider.reason.clone().unwrap_or_default()),
        ]
    };
    let rows: Vec<Vec<Cell>> = providers.iter().map(row).collect();
    output::table(&["NAME", "STATUS", "SINCE", "CAN", "REASON"], &rows);
    Ok(ExitCode::SUCCESS)
}

async fn unknown(global: &Global, format: Format, rm: Option<String>) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    if let Some(id) = rm {
        client.delete_unknown_instance(&id).await?;
        output::line(id);
        return Ok(ExitCode::SUCCESS);
    }
    let all = client.unknown_instances().await?;
    if format.json {
        output::json(&all)?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |one: &UnknownInstance| {
        vec![
            Cell::from(&one.id),
            Cell::from(&one.provider),
            Cell::from(&one.state),
            Cell::from(one.sandbox_id.as_deref().unwrap_or_default()),
            Cell::from(text_of(&one.other, "created_at")),
        ]
    };
    let rows: Vec<Vec<Cell>> = all.iter().map(row).collect();
    output::table(&["ID", "PROVIDER", "STATE", "SANDBOX", "CREATED"], &rows);
    Ok(ExitCode::SUCCESS)
}

/// What can be done with its sandboxes, in words.
fn able(provider: &Provider) -> String {
    let able = provider
        .capabilities
        .iter()
        .filter(|(_, is_able)| **is_able);
    let words: Vec<&str> = able.map(|(word, _)| word.as_str()).collect();
    words.join(" ")
}
