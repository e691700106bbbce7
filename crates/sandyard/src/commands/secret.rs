//! `sandyard secret`: what sandboxes use without seeing it.

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use sandyard_client::{Secret, SecretRequest};
use sandyard_core::network::BoundHost;
use serde_json::json;

use super::ask::{self, Times};
use super::show::text_of;
use crate::global::Global;
use crate::output::{self, Cell, Format};

/// The longest value that is read.
const MAX_VALUE: u64 = 32 << 10;

#[derive(Debug, Subcommand)]
#[command(
    after_help = "A sandbox gets a placeholder in a variable. In the headers of its requests to the hosts that the secret is
bound to, the gateway puts the value in the placeholder's place. The value itself never enters the sandbox.

Examples:
  sandyard secret set github --host api.github.com --value-from env:GITHUB_TOKEN
  sandyard create --secret GITHUB_TOKEN=github
  sandyard secret ls"
)]
pub(crate) enum SecretCommand {
    /// Keep a secret, or change the one of this name
    Set(SetArgs),
    /// List the secrets you may use, without their values
    #[command(alias = "list")]
    Ls {
        #[command(flatten)]
        format: Format,
    },
    /// Forget a secret
    #[command(alias = "delete")]
    Rm {
        /// Its name
        name: String,
        #[command(flatten)]
        format: Format,
    },
}

#[derive(Debug, Args)]
#[command(
    after_help = "The value is asked for on the terminal, or read as one line from standard input, or comes from where
--value-from says. It never stands on the command line, where every user of the host could see it.

Examples:
  sandyard secret set openai --host api.openai.com
  sandyard secret set github --host api.github.com --value-from env:GITHUB_TOKEN
  pass show registry | sandyard secret set registry --host '*.registry.example.com' --value-from -"
)]
pub(crate) struct SetArgs {
    /// Its name: letters, digits, - and _
    name: String,
    /// Where it may go, and nowhere else, like api.example.com, '*.example.com' or api.example.com:8443; may be repeated.
    /// Over TLS alone, unless written http://HOST
    #[arg(long = "host", value_name = "HOST", required = true, value_parser = host)]
    hosts: Vec<String>,
    /// Where the value comes from: a file, - for standard input, or env:VARIABLE [default: ask]
    #[arg(long, value_name = "SOURCE")]
    value_from: Option<Source>,
    /// What sandboxes have in its place; for programs that look at the form of a key [default: made from its name]
    #[arg(long, value_name = "TEXT")]
    placeholder: Option<String>,
    /// Let every user use it; for admins
    #[arg(long)]
    shared: bool,
    #[command(flatten)]
    format: Format,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    File(PathBuf),
    Input,
    Variable(String),
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("env:")) {
            ("" | "env:", _) => Err("write a file, - or env:VARIABLE".to_owned()),
            ("-", _) => Ok(Self::Input),
            (_, Some(name)) => Ok(Self::Variable(name.to_owned())),
            (path, None) => Ok(Self::File(path.into())),
        }
    }
}

impl Source {
    fn read(&self) -> anyhow::Result<String> {
        let text = match self {
            Self::Variable(name) => std::env::var(name)
                .ok()
                .with_context(|| format!("there is no text in the variable `{name}`"))?,
            Self::Input => whole(std::io::stdin().lock(), "standard input")?,
            Self::File(path) => {
                let shown = format!("`{}`", path.display());
                let file = std::fs::File::open(path).with_context(|| format!("opening {shown}"))?;
                whole(file, &shown)?
            }
        };
        // Editors and `echo` put a newline at the end; no header has one.
        let value = text.trim_end_matches(['\n', '\r']);
        match value.is_empty() {
            true => bail!("the value is empty"),
            false => Ok(value.to_owned()),
        }
    }
}

fn whole(source: impl Read, name: &str) -> anyhow::Result<String> {
    let mut text = String::new();
    source
        .take(MAX_VALUE + 1)
        .read_to_string(&mut text)
        .with_context(|| format!("reading {name}"))?;
    match text.len() as u64 > MAX_VALUE {
        true => bail!("{name} holds more than {MAX_VALUE} bytes: that is no secret for a header"),
        false => Ok(text),
    }
}

fn host(text: &str) -> Result<String, String> {
    let host = text.parse::<BoundHost>();
    host.map(|_| text.to_owned())
        .map_err(|error| error.to_string())
}

/// Does what was asked for.
pub(crate) async fn secret(global: &Global, command: SecretCommand) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    match command {
        SecretCommand::Set(args) => {
            let value = match &args.value_from {
                Some(source) => source.read()?,
                None => ask::hidden("value", Times::Once)?,
            };
            let request = SecretRequest {
                value,
                hosts: args.hosts,
                placeholder: args.placeholder,
                is_shared: args.shared,
            };
            let secret = client.put_secret(&args.name, &request).await?;
            print(&secret, args.format)?;
        }
        SecretCommand::Ls { format } => list(&client.secrets().await?, format)?,
        SecretCommand::Rm { name, format } => {
            client.delete_secret(&name).await?;
            match format.json {
                true => output::json(&json!({ "name": name }))?,
                false => output::line(&name),
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print(secret: &Secret, format: Format) -> anyhow::Result<()> {
    if format.json {
        return output::json(secret);
    }
    output::line(&secret.name);
    if output::is_colourful() {
        output::note(format!(
            "try: sandyard create --secret VARIABLE={}",
            secret.name
        ));
    }
    Ok(())
}

fn list(secrets: &[Secret], format: Format) -> anyhow::Result<()> {
    if format.json {
        return output::json(&secrets);
    }
    let row = |secret: &Secret| {
        vec![
            Cell::from(&secret.name),
            Cell::from(&secret.owner),
            Cell::from(if secret.is_shared {
                "everybody"
            } else {
                "owner"
            }),
            Cell::from(secret.hosts.join(", ")),
            Cell::from(&secret.placeholder),
            Cell::from(text_of(&secret.other, "updated_at")),
        ]
    };
    let rows: Vec<Vec<Cell>> = secrets.iter().map(row).collect();
    output::table(
        &["NAME", "OWNER", "FOR", "HOSTS", "PLACEHOLDER", "UPDATED"],
        &rows,
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_from_files_input_and_variables() {
        for (text, expected) in [
            ("-", Source::Input),
            ("env:TOKEN", Source::Variable("TOKEN".to_owned())),
            ("./-", Source::File("./-".into())),
            ("key.txt", Source::File("key.txt".into())),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        assert!("".parse::<Source>().is_err() && "env:".parse::<Source>().is_err());
    }

    #[test]
    fn a_value_loses_the_newline_of_its_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        for (text, expected) in [
            ("s3cret\n", Some("s3cret")),
            (" a b \r\n", Some(" a b ")),
            ("\n", None),
            ("", None),
        ] {
            std::fs::write(&path, text).unwrap();
            let value = Source::File(path.clone()).read();
            assert_eq!(value.ok().as_deref(), expected, "{text:?}");
        }
        std::fs::write(&path, "x".repeat(40_000)).unwrap();
        assert!(Source::File(path).read().is_err());
        assert!(
            Source::Variable("NO_SUCH_VARIABLE".to_owned())
                .read()
                .is_err()
        );
    }
}
