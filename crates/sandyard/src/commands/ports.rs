//! `sandyard ports`.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::info::SandboxArgs;
use crate::global::Global;
use crate::output::{Cell, Format};

#[derive(Debug, Subcommand)]
#[command(
    after_help = "Ports are private: only their owner reaches them, with a key or with a link of `ports open`.

Examples:
  sandyard ports open web 3000     # print a link; `sandyard open` opens it
  sandyard ports share web 3000    # anyone can open the URL
  sandyard ports unshare web 3000"
)]
pub(crate) enum PortsCommand {
    /// List open ports of a sandbox
    Ls(SandboxArgs),
    /// Print a link to a port that works in any browser for 24 hours
    Open(PortArgs),
    /// Make a port public and print its URL
    Share(PortArgs),
    /// Make a public port private again
    Unshare(PortArgs),
}

#[derive(Debug, Args)]
pub(crate) struct PortArgs {
    /// ID or name of the sandbox
    #[arg(value_name = "ID")]
    id: String,
    /// Port in the sandbox
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    #[command(flatten)]
    format: Format,
}

/// Lists ports, or prints the URL of one.
pub(crate) async fn ports(global: &Global, command: PortsCommand) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    let (port, format) = match command {
        PortsCommand::Ls(args) => {
            let ports = client.ports(&args.id).await?;
            return args
                .format
                .print_table(&["PORT", "ACCESS", "URL"], &ports, |port| {
                    vec![
                        Cell::from(port.port.to_string()),
                        Cell::from(if port.public { "public" } else { "owner" }),
                        Cell::from(&port.url),
                    ]
                });
        }
        PortsCommand::Open(args) => (client.expose_port(&args.id, args.port).await?, args.format),
        PortsCommand::Share(args) => (client.share_port(&args.id, args.port).await?, args.format),
        PortsCommand::Unshare(args) => {
            (client.unshare_port(&args.id, args.port).await?, args.format)
        }
    };
    // A browser sends no API key, so its link carries a token.
    let link = port.browser_url.as_ref().or(port.signed_url.as_ref());
    let url = link.filter(|_| !port.public).unwrap_or(&port.url);
    format.print(&port, url)
}
