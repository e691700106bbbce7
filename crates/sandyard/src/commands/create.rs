//! `sandyard create`.

use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use sandyard_client::{Client, CreateSandbox};

use super::args::{LimitArgs, mount, pair, seconds, secret_pair};
use super::network::{PolicyArgs, is_allow_list_redundant, warn_if_allow_list_is_redundant};
use crate::global::Global;
use crate::output::{self, Format};

#[derive(Debug, Args)]
#[command(
    after_help = "Prints the ID of the sandbox. Options that are not given take their defaults from the server's settings: 1h without \
activity, then paused; 2g of memory, 2 cores, 4g of disk and 1024 processes, unless the operator changed them.

Examples:
  id=$(sandyard create)
  sandyard create --name build --memory 1g --timeout 2h --metadata ticket=42
  sandyard create --no-internet --allow pypi.org --allow '*.pythonhosted.org'
  sandyard create --provider docker --template python:3.13
  sandyard secret set github --host api.github.com
  sandyard create --secret GITHUB_TOKEN=github
  sandyard volume create models
  sandyard create --volume models:/mnt/models"
)]
pub(crate) struct CreateArgs {
    /// Template to start from; `sandyard template ls` lists templates
    #[arg(long, short = 'T')]
    template: Option<String>,
    /// Provider to run on; `sandyard provider ls` lists providers
    #[arg(long, short = 'P', value_name = "NAME")]
    provider: Option<String>,
    /// Name of the sandbox, accepted wherever an ID is
    #[arg(long)]
    name: Option<String>,
    /// Owner of the sandbox; admins can name another user [default: you]
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Idle timeout, for example 90s, 30m or 2h
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    timeout: Option<u64>,
    /// What to do with the sandbox when it times out
    #[arg(long, value_name = "ACTION", value_parser = ["pause", "delete"])]
    timeout_action: Option<String>,
    #[command(flatten)]
    limits: LimitArgs,
    /// Environment variable of every command; repeatable
    #[arg(long, short, value_name = "NAME=VALUE", value_parser = pair)]
    env: Vec<(String, String)>,
    /// Metadata to store with the sandbox; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    metadata: Vec<(String, String)>,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Secret to use: the variable gets a placeholder, not the value; repeatable. `sandyard secret ls` lists your secrets
    #[arg(long = "secret", value_name = "VARIABLE=SECRET", value_parser = secret_pair)]
    secrets: Vec<(String, String)>,
    /// Volume to mount at a path; repeatable. `sandyard volume ls` lists your volumes
    #[arg(long = "volume", value_name = "NAME:/PATH", value_parser = mount)]
    volumes: Vec<(String, String)>,
    /// Print only the ID
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,
    #[command(flatten)]
    format: Format,
}

/// Creates a sandbox and prints its id.
pub(crate) async fn create(global: &Global, args: CreateArgs) -> anyhow::Result<ExitCode> {
    let (format, quiet) = (args.format, args.quiet);
    let request = args.into_request();
    let client = global.client()?;
    if let Some(user) = &request.user_id {
        check_user(&client, user).await?;
    }
    let sandbox = client.create(&request).await?;
    // The server fills in what the flags leave open, so ask it. A failure here does not matter: the sandbox exists.
    if request
        .network
        .is_some_and(|requested| is_allow_list_redundant(&requested))
        && let Ok(network) = client.network(&sandbox.sandbox_id).await
    {
        warn_if_allow_list_is_redundant(&network.network);
    }
    format.print(&sandbox, &sandbox.sandbox_id)?;
    if !format.json && !quiet && output::use_colour() {
        output::note(format!("try: sandyard shell {}", sandbox.sandbox_id));
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails if only an admin may create a sandbox for this user: the server ignores the user in such a request.
async fn check_user(client: &Client, user: &str) -> anyhow::Result<()> {
    let info = client.server_info().await?;
    if !info.is_admin && !info.user.is_empty() && info.user != user {
        bail!(
            "only an admin can create a sandbox for `{user}`: you are `{}`",
            info.user
        );
    }
    Ok(())
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
            memory_limit: self.limits.memory.map(|size| size.to_string()),
            cpu_limit: self.limits.cpu,
            disk_limit: self.limits.disk.map(|size| size.to_string()),
            pids_limit: self.limits.pids,
            network: self.policy.into_policy(),
            secrets: self.secrets.into_iter().collect(),
            volumes: self.volumes.into_iter().collect(),
        }
    }
}
