//! `sandyard tools`: the tool server for a directory of this host, without a sandbox.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use sandyard_core::random;
use sandyard_tools::{Endpoints, Options, TokenHash};
use serde_json::json;

use crate::output::{self, Format};

/// Minimum length of a token. The token gives the right to run programs on this host.
const MIN_TOKEN_CHARS: usize = 16;

#[derive(Debug, Args)]
#[command(
    after_help = "Anyone with the token can run programs as you: only the file tools are confined to the directory. Use a sandbox for code \
that you do not trust; every sandbox has this tool server."
)]
pub(crate) struct ToolsArgs {
    /// Directory to work in; file tools cannot access anything else
    #[arg(long, value_name = "DIR", default_value = ".")]
    workspace: PathBuf,
    /// Loopback port to listen on; 0 chooses a free port
    #[arg(long, default_value_t = 6060, conflicts_with = "stdio")]
    port: u16,
    /// Token that clients must send [default: a random token, printed at start]
    #[arg(long, env = "SANDYARD_TOOLS_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Use MCP on standard input and output instead of HTTP
    #[arg(long)]
    stdio: bool,
    #[command(flatten)]
    format: Format,
}

/// Serves until Ctrl-C.
pub(crate) async fn tools(args: ToolsArgs) -> anyhow::Result<ExitCode> {
    let workspace = args
        .workspace
        .canonicalize()
        .with_context(|| format!("cannot open the directory `{}`", args.workspace.display()))?;
    if !workspace.is_dir() {
        bail!("`{}` is not a directory", workspace.display());
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
        Some(token) if token.len() < MIN_TOKEN_CHARS => {
            bail!(
                "the token must have at least {MIN_TOKEN_CHARS} characters (got {})",
                token.len()
            );
        }
        Some(token) => token,
        None => random::text::<24>().context("no random bytes for a token")?,
    };
    let listener = TcpListener::bind(("127.0.0.1", args.port)).with_context(|| {
        let port = args.port;
        format!("cannot listen on port {port}: choose another with --port")
    })?;
    options.port = listener.local_addr()?.port();
    options.token = Some(TokenHash::of(&token));
    let url = format!("http://127.0.0.1:{}/mcp", options.port);
    if args.format.json {
        output::json(&json!({"url": url, "token": token}))?;
    } else {
        output::line(format!("Tools for {}", options.workspace.display()));
        output::line(format!("  URL    {url}"));
        output::line(format!("  header Authorization: Bearer {token}"));
    }
    let endpoints = Endpoints {
        listeners: vec![listener],
        connections: None,
    };
    tokio::select! {
        ended = sandyard_tools::serve(options, endpoints) => ended?,
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(ExitCode::SUCCESS)
}
