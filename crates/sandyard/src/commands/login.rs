//! `sandyard login`, `logout` and `context`: servers that the user works with.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use sandyard_client::{Client, ClientConfig};
use serde_json::json;

use super::prompt::{self, Confirmation};
use crate::contexts::Login;
use crate::global::Global;
use crate::output::{self, Cell, Format};

#[derive(Debug, Args)]
#[command(
    after_help = "Asks for an API key, or reads it from standard input or from a file, so that it does not appear in the list of processes. \
`sandyard key add NAME` creates one. The URL and the key are stored in ~/.config/sandyard/contexts.json, which only you can \
read. SANDYARD_URL and SANDYARD_API_KEY take precedence.

Examples:
  sandyard login https://sandyard.example.com
  sandyard login https://10.0.0.7:8100 --name lab --ca-cert ca.pem < key.txt"
)]
pub(crate) struct LoginArgs {
    /// URL of the server
    #[arg(value_name = "SERVER")]
    server: String,
    /// Name of the context [default: the host of the URL]
    #[arg(long)]
    name: Option<String>,
    /// File with the API key
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct LogoutArgs {
    /// Name of the context [default: the current one]
    name: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ContextCommand {
    /// List contexts
    Ls(Format),
    /// Choose the context that commands use
    Use {
        /// Name of the context
        name: String,
    },
    /// Delete a context with its key
    Rm {
        /// Name of the context
        name: String,
    },
}

/// Checks a key and stores it with the server's URL.
pub(crate) async fn login(global: &Global, args: &LoginArgs) -> anyhow::Result<ExitCode> {
    let key = match &args.key_file {
        Some(path) => std::fs::read_to_string(path)
            .with_context(|| format!("reading `{}`", path.display()))?
            .trim()
            .to_owned(),
        None => prompt::hidden("API key", Confirmation::None)?,
    };
    let ca_pem = global.ca_cert().map(|path| {
        std::fs::read_to_string(&path).with_context(|| format!("reading `{}`", path.display()))
    });
    let ca_pem = ca_pem.transpose()?;
    let client = Client::with_config(ClientConfig {
        url: args.server.clone(),
        key: Some(key.clone()),
        ca_pem: ca_pem.clone().map(String::into_bytes),
    })?;
    let user = client.server_info().await?.user;
    if client.url().starts_with("http://") && !client.is_loopback() {
        output::note("note: the connection is not encrypted: others may read the key");
    }
    let host = client.url().split("://").last().unwrap_or_default();
    let name = args.name.clone().unwrap_or_else(|| host.to_owned());
    let (path, mut contexts) = global.contexts()?;
    let login = Login {
        url: client.url().to_owned(),
        user: user.clone(),
        key,
        ca_pem,
    };
    contexts.contexts.insert(name.clone(), login);
    contexts.current = Some(name.clone());
    contexts.save(&path)?;
    output::line(format!(
        "logged in to {} as `{user}`, context `{name}`",
        client.url()
    ));
    Ok(ExitCode::SUCCESS)
}

/// Deletes a context with its key.
pub(crate) fn logout(global: &Global, args: &LogoutArgs) -> anyhow::Result<ExitCode> {
    let (path, mut contexts) = global.contexts()?;
    let name = args.name.clone().or_else(|| contexts.current.clone());
    let Some(name) = name else {
        bail!("you are not logged in");
    };
    if contexts.contexts.remove(&name).is_none() {
        bail!("no context `{name}`; `sandyard context ls` lists them");
    }
    if contexts.current.as_ref() == Some(&name) {
        contexts.current = None;
    }
    contexts.save(&path)?;
    output::line(name);
    Ok(ExitCode::SUCCESS)
}

/// Lists, chooses or deletes contexts.
pub(crate) fn context(global: &Global, command: ContextCommand) -> anyhow::Result<ExitCode> {
    let (path, mut contexts) = global.contexts()?;
    match command {
        ContextCommand::Rm { name } => logout(global, &LogoutArgs { name: Some(name) }),
        ContextCommand::Use { name } => {
            if !contexts.contexts.contains_key(&name) {
                bail!("no context `{name}`; `sandyard context ls` lists them");
            }
            contexts.current = Some(name.clone());
            contexts.save(&path)?;
            output::line(name);
            Ok(ExitCode::SUCCESS)
        }
        ContextCommand::Ls(format) => {
            let is_current = |name: &String| contexts.current.as_ref() == Some(name);
            let all: Vec<_> = contexts
                .contexts
                .iter()
                .map(|(name, login)| {
                    json!({"name": name, "url": login.url, "user": login.user, "current": is_current(name)})
                })
                .collect();
            format.print_table(&["NAME", "URL", "USER", "CURRENT"], &all, |context| {
                let text = |name: &str| Cell::from(context[name].as_str().unwrap_or_default());
                let mark = if context["current"] == true {
                    "yes"
                } else {
                    ""
                };
                vec![text("name"), text("url"), text("user"), Cell::from(mark)]
            })
        }
    }
}
