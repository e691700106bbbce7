//! `sandyard create`: makes a sandbox.

use std::process::ExitCode;

use clap::Args;
use sandyard_client::CreateSandbox;
use sandyard_core::size::Size;

use super::args::{mount, pair, seconds, secret_pair};
use super::network::{PolicyArgs, is_open_beside_entries, note_if_open};
use crate::global::Global;
use crate::output::{self, Format};

#[derive(Debug, Args)]
#[command(
    after_help = "Prints the sandbox's id. Where nothing is said, the server's settings hold.

Examples:
  id=$(sandyard create)
  sandyard create --name build --memory 1g --timeout 2h --env TOKEN=abc --metadata ticket=42
  sandyard create --no-internet --allow pypi.org --allow '*.pythonhosted.org'
  sandyard create --secret GITHUB_TOKEN=github      # kept before with `sandyard secret set github`
  sandyard create --provider docker --template python:3.13
  sandyard create --volume models:/mnt/models       # made before with `sandyard volume create models`"
)]
pub(crate) struct CreateArgs {
    /// What it starts from; `sandyard template ls` lists them
    #[arg(long, short = 'T')]
    template: Option<String>,
    /// Where it runs; `sandyard provider ls` lists them
    #[arg(long, short = 'P', value_name = "NAME")]
    provider: Option<String>,
    /// A name of yours for it, usable wherever an id is
    #[arg(long)]
    name: Option<String>,
    /// For which user; only an admin may name somebody else
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// How long it lives without activity, like 90, 30m or 2h
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    timeout: Option<u64>,
    /// What happens then
    #[arg(long, value_name = "WHAT", value_parser = ["pause", "delete"])]
    timeout_action: Option<String>,
    /// Memory, like 512m or 2g
    #[arg(long, short, value_name = "SIZE")]
    memory: Option<Size>,
    /// Processor cores, like 0.5 or 2
    #[arg(long, value_name = "CORES")]
    cpu: Option<f64>,
    /// Bytes it may write, like 500m or 4g
    #[arg(long, value_name = "SIZE")]
    disk: Option<Size>,
    /// Processes and threads at once
    #[arg(long, value_name = "COUNT")]
    pids: Option<u32>,
    /// Set a variable for every command; may be repeated
    #[arg(long, short, value_name = "NAME=VALUE", value_parser = pair)]
    env: Vec<(String, String)>,
    /// Remember something with it; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    metadata: Vec<(String, String)>,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Use a secret without seeing it: the variable holds a placeholder; may be repeated. `sandyard secret ls` lists yours
    #[arg(long = "secret", value_name = "VARIABLE=SECRET", value_parser = secret_pair)]
    secrets: Vec<(String, String)>,
    /// Have a volume at a path inside; may be repeated. `sandyard volume ls` lists yours
    #[arg(long = "volume", value_name = "NAME:/PATH", value_parser = mount)]
    volumes: Vec<(String, String)>,
    /// Print nothing but the id
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
    #[command(flatten)]
    format: Format,
}

/// Makes a sandbox and prints its id.
pub(crate) async fn create(global: &Global, args: CreateArgs) -> anyhow::Result<ExitCode> {
    let (format, quiet) = (args.format, args.quiet);
    let request = args.into_request();
    let client = global.client()?;
    let sandbox = client.create(&request).await?;
    // What was not said is up to the server, so it is asked. The sandbox is there, whatever comes of that.
    if request
        .network
        .is_some_and(|asked| is_open_beside_entries(&asked))
        && let Ok(network) = client.network(&sandbox.sandbox_id).await
    {
        note_if_open(&network.network);
    }
    if format.json {
        output::json(&sandbox)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(&sandbox.sandbox_id);
    if !quiet && output::is_colourful() {
        output::note(format!(
            "try: sandyard exec -it {} -- bash",
            sandbox.sandbox_id
        ));
    }
    Ok(ExitCode::SUCCESS)
}

impl CreateArgs {
    fn into_request(self) -> CreateSandbox {
        CreateSandbox {
            user_id: self.user,
            template: self.template,
            provider: self.provider,
            alias: self.name,
            timeout: self.timeout,
            timeout_action: self.timeout_action,
            metadata: self.metadata.into_iter().collect(),
            env: self.env.into_iter().collect(),
            memory_limit: self.memory.map(|size| size.to_string()),
            cpu_limit: self.cpu,
            disk_limit: self.disk.map(|size| size.to_string()),
            pids_limit: self.pids,
            network: self.policy.into_policy(),
            secrets: self.secrets.into_iter().collect(),
            volumes: self.volumes.into_iter().collect(),
        }
    }
}
