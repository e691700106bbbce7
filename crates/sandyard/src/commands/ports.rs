//! `sandyard ports`: ports of a sandbox, from outside.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use sandyard_client::Port;

use crate::global::Global;
use crate::output::{self, Cell, Format};

#[derive(Debug, Subcommand)]
pub(crate) enum PortsCommand {
    /// List ports that are open inside
    Ls {
        /// Id or name of a sandbox
        #[arg(value_name = "ID")]
        id: String,
        #[command(flatten)]
        format: Format,
    },
    /// Print a link to a port that opens in any browser for a day
    Open(PortArgs),
    /// Let anybody open a port, and print its address
    Share(PortArgs),
    /// Take that back
    Unshare(PortArgs),
}

#[derive(Debug, Args)]
pub(crate) struct PortArgs {
    /// Id or name of a sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// The port inside
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    #[command(flatten)]
    format: Format,
}

/// Does what was asked for.
pub(crate) async fn ports(global: &Global, command: PortsCommand) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    let (port, format) = match command {
        PortsCommand::Ls { id, format } => {
            list(&client.ports(&id).await?, format)?;
            return Ok(ExitCode::SUCCESS);
        }
        PortsCommand::Open(args) => (client.expose_port(&args.id, args.port).await?, args.format),
        PortsCommand::Share(args) => (client.share_port(&args.id, args.port).await?, args.format),
        PortsCommand::Unshare(args) => {
            (client.unshare_port(&args.id, args.port).await?, args.format)
        }
    };
    match (format.json, &port.signed_url) {
        (true, _) => output::json(&port)?,
        // A browser shows no key, so the link carries its own right.
        (false, Some(signed)) if !port.public => output::line(signed),
        (false, _) => output::line(&port.url),
    }
    Ok(ExitCode::SUCCESS)
}

fn list(ports: &[Port], format: Format) -> anyhow::Result<()> {
    if format.json {
        return output::json(&ports);
    }
    let row = |port: &Port| {
        vec![
            Cell::from(port.port.to_string()),
            Cell::from(if port.public { "anybody" } else { "owner" }),
            Cell::from(&port.url),
        ]
    };
    let rows: Vec<Vec<Cell>> = ports.iter().map(row).collect();
    output::table(&["PORT", "FOR", "URL"], &rows);
    Ok(())
}
