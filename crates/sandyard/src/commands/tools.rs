//! `sandyard tools`: the tool server alone, for a folder of this machine.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use sandyard_core::random;
use sandyard_tools::{Doors, Options, TokenHash};
use serde_json::json;

use crate::output;

/// Shortest token people may choose; whoever has it can run programs here.
const SHORTEST_TOKEN: usize = 16;

#[derive(Debug, Args)]
#[command(
    after_help = "Whoever has the token can run programs as you: the tools are not confined to the folder, only the file tools are.
Use a sandbox for what you do not trust; every sandbox has this tool server."
)]
pub(crate) struct ToolsArgs {
    /// The folder tools work in; file tools reach nothing else
    #[arg(long, value_name = "DIR", default_value = ".")]
    workspace: PathBuf,
    /// The port to listen on, of loopback; 0 takes a free one
    #[arg(long, default_value_t = 6060, conflicts_with = "stdio")]
    port: u16,
    /// What callers must show; made up and printed when not given
    #[arg(long, env = "SANDYARD_TOOLS_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Speak MCP on standard input and output instead, for clients that start a program
    #[arg(long)]
    stdio: bool,
    /// Print where it listens as JSON
    #[arg(long)]
    json: bool,
}

/// Serves until it is interrupted.
pub(crate) async fn tools(args: ToolsArgs) -> anyhow::Result<ExitCode> {
    let workspace = args
        .workspace
        .canonicalize()
        .with_context(|| format!("cannot use the folder {}", args.workspace.display()))?;
    if !workspace.is_dir() {
        bail!("{} is no folder", workspace.display());
    }
    let mut options = Options {
        home: std::env::home_dir().unwrap_or_else(|| workspace.clone()),
        more_roots: Vec::new(),
        workspace,
        token: None,
        port: args.port,
    };
    if args.stdio {
        sandyard_tools::serve_stdio(options).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let token = match args.token {
        Some(token) if token.len() < SHORTEST_TOKEN => {
            bail!("the token is too short: give it at least {SHORTEST_TOKEN} characters");
        }
        Some(token) => token,
        None => made_up_token()?,
    };
    let listener = TcpListener::bind(("127.0.0.1", args.port)).with_context(|| {
        let port = args.port;
        format!("cannot listen on port {port}; choose another with --port")
    })?;
    options.port = listener.local_addr()?.port();
    options.token = Some(TokenHash::of(&token));
    let url = format!("http://127.0.0.1:{}/mcp", options.port);
    if args.json {
        output::json(&json!({"url": url, "token": token}))?;
    } else {
        output::line(format!("Tools of {}", options.workspace.display()));
        output::line(format!("  URL    {url}"));
        output::line(format!("  send   Authorization: Bearer {token}"));
    }
    let doors = Doors {
        listeners: vec![listener],
        connections: None,
    };
    tokio::select! {
        ended = sandyard_tools::serve(options, doors) => ended?,
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn made_up_token() -> anyhow::Result<String> {
    random::text::<24>().context("no randomness for a token")
}
