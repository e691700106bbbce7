//! `sandyard secret`.

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use sandyard_client::SecretRequest;
use sandyard_core::network::BoundHost;
use serde_json::json;

use super::prompt::{self, Confirmation};
use super::render::field_text;
use crate::global::Global;
use crate::output::{self, Cell, Format};

/// Maximum length of a value, in bytes.
const MAX_VALUE_BYTES: u64 = 32 << 10;

#[derive(Debug, Subcommand)]
#[command(
    after_help = "A sandbox gets a placeholder in an environment variable. The gateway replaces the placeholder with the value in the \
headers of requests to the hosts that the secret is bound to. The value itself never enters the sandbox.

Examples:
  sandyard secret set github --host api.github.com --value-from env:GITHUB_TOKEN
  sandyard create --secret GITHUB_TOKEN=github
  sandyard secret ls"
)]
pub(crate) enum SecretCommand {
    /// Create a secret, or replace the one with this name
    Set(SetArgs),
    /// List the secrets that you may use, without their values
    Ls(Format),
    /// Delete a secret
    Rm {
        /// Name of the secret
        name: String,
        #[command(flatten)]
        format: Format,
    },
}

#[derive(Debug, Args)]
#[command(
    after_help = "The value comes from --value-from, from a prompt on the terminal, or from one line of standard input. It is not accepted on \
the command line, where every user of the host could see it.

Examples:
  sandyard secret set openai --host api.openai.com
  sandyard secret set github --host api.github.com --value-from env:GITHUB_TOKEN
  pass show ci | sandyard secret set ci --host ci.example.com --value-from -"
)]
pub(crate) struct SetArgs {
    /// Name: letters, digits, - and _
    name: String,
    /// Host that may receive the secret, for example api.example.com, '*.example.com' or api.example.com:8443; repeatable.
    /// The gateway sends it over TLS only, unless the host is written as http://HOST
    #[arg(long = "host", value_name = "HOST", required = true, value_parser = host)]
    hosts: Vec<String>,
    /// Source of the value: a file, - for standard input, or env:VARIABLE [default: prompt]
    #[arg(long, value_name = "SOURCE")]
    value_from: Option<Source>,
    /// Placeholder that sandboxes see, for programs that check the form of a key [default: derived from the name]
    #[arg(long, value_name = "TEXT")]
    placeholder: Option<String>,
    /// Let every user use the secret (admins only)
    #[arg(long)]
    shared: bool,
    #[command(flatten)]
    format: Format,
}

/// Source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    File(PathBuf),
    StandardInput,
    Variable(String),
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("env:")) {
            ("" | "env:", _) => Err("expected a file, - or env:VARIABLE".to_owned()),
            ("-", _) => Ok(Self::StandardInput),
            (_, Some(name)) => Ok(Self::Variable(name.to_owned())),
            (path, None) => Ok(Self::File(path.into())),
        }
    }
}

impl Source {
    fn read(&self) -> anyhow::Result<String> {
        let text = match self {
            Self::Variable(name) => std::env::var(name).ok().with_context(|| {
                format!("the environment variable `{name}` is not set, or is not text")
            })?,
            Self::StandardInput => read_bounded(std::io::stdin().lock(), "standard input")?,
            Self::File(path) => {
                let quoted_path = format!("`{}`", path.display());
                let file =
                    std::fs::File::open(path).with_context(|| format!("opening {quoted_path}"))?;
                read_bounded(file, &quoted_path)?
            }
        };
        // Editors and `echo` append a newline, which a header cannot contain.
        let value = text.trim_end_matches(['\n', '\r']);
        match value.is_empty() {
            true => bail!("the value is empty"),
            false => Ok(value.to_owned()),
        }
    }
}

fn read_bounded(source: impl Read, name: &str) -> anyhow::Result<String> {
    let mut text = String::new();
    source
        .take(MAX_VALUE_BYTES + 1)
        .read_to_string(&mut text)
        .with_context(|| format!("reading {name}"))?;
    match text.len() as u64 > MAX_VALUE_BYTES {
        true => bail!("{name} is longer than {MAX_VALUE_BYTES} bytes, the maximum for a secret"),
        false => Ok(text),
    }
}

fn host(text: &str) -> Result<String, String> {
    let host = text.parse::<BoundHost>();
    host.map(|_| text.to_owned())
        .map_err(|error| error.to_string())
}

/// Creates, lists or deletes secrets.
pub(crate) async fn secret(global: &Global, command: SecretCommand) -> anyhow::Result<ExitCode> {
    let client = global.client()?;
    match command {
        SecretCommand::Set(args) => {
            let value = match &args.value_from {
                Some(source) => source.read()?,
                None => prompt::hidden("value", Confirmation::None)?,
            };
            let request = SecretRequest {
                value,
                hosts: args.hosts,
                placeholder: args.placeholder,
                is_shared: args.shared,
            };
            let secret = client.put_secret(&args.name, &request).await?;
            args.format.print(&secret, &secret.name)?;
            if !args.format.json && output::use_colour() {
                let name = &secret.name;
                output::note(format!("try: sandyard create --secret VARIABLE={name}"));
            }
            Ok(ExitCode::SUCCESS)
        }
        SecretCommand::Ls(format) => {
            let headings = ["NAME", "OWNER", "ACCESS", "HOSTS", "PLACEHOLDER", "UPDATED"];
            format.print_table(&headings, &client.secrets().await?, |secret| {
                vec![
                    Cell::from(&secret.name),
                    Cell::from(&secret.owner),
                    Cell::from(if secret.is_shared {
                        "everyone"
                    } else {
                        "owner"
                    }),
                    Cell::from(secret.hosts.join(", ")),
                    Cell::from(&secret.placeholder),
                    Cell::from(field_text(&secret.other, "updated_at")),
                ]
            })
        }
        SecretCommand::Rm { name, format } => {
            client.delete_secret(&name).await?;
            format.print(&json!({ "name": name }), &name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_a_file_standard_input_or_a_variable() {
        for (text, expected) in [
            ("-", Source::StandardInput),
            ("env:TOKEN", Source::Variable("TOKEN".to_owned())),
            ("./-", Source::File("./-".into())),
            ("key.txt", Source::File("key.txt".into())),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        assert!("".parse::<Source>().is_err() && "env:".parse::<Source>().is_err());
    }

    #[test]
    fn only_trailing_newlines_of_a_file_are_removed() {
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
