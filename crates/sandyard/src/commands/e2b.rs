//! `sandyard e2b`: settings that make programs written for E2B use this server.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use sandyard_client::E2bInfo;
use serde_json::{Map, Value};

use crate::global::Global;
use crate::output::{self, Format};

#[derive(Debug, Subcommand)]
pub(crate) enum E2bCommand {
    /// Print shell commands that set the environment variables of the E2B SDKs
    #[command(
        after_help = "Example: eval \"$(sandyard e2b env)\"   (in fish: sandyard e2b env | source)"
    )]
    Env {
        #[command(flatten)]
        format: Format,
    },
}

/// Prints the environment variables.
pub(crate) async fn e2b(global: &Global, command: E2bCommand) -> anyhow::Result<ExitCode> {
    let E2bCommand::Env { format } = command;
    let client = global.client()?;
    let info = client.server_info().await?.e2b;
    // Checked after the request, because the server's error about a key is more precise.
    let Some(key) = client.key() else {
        bail!(
            "the E2B SDKs need an API key: create one with `sandyard key add NAME` and set SANDYARD_API_KEY to it; \
             on the server's host, --data-dir DIR finds the admin key"
        );
    };
    if !info.is_domain_enough && !info.has_listener {
        output::note(format!(
            "note: the E2B API is served only at {}, and old SDKs drop the path of a URL: set `e2b.port`, or behind a proxy `e2b.domain`",
            info.url
        ));
    }
    let certificate = certificate(global, &info)?;
    let variables = variables(key, &info, certificate.as_deref());
    match format.json {
        true => output::json(&as_object(&variables))?,
        false => lines(&variables, &info).iter().for_each(output::line),
    }
    Ok(ExitCode::SUCCESS)
}

/// The certificate file that the SDKs must trust: the one that we used to reach the server.
fn certificate(global: &Global, info: &E2bInfo) -> anyhow::Result<Option<PathBuf>> {
    let Some(path) = global.ca_cert().filter(|_| info.url.starts_with("https:")) else {
        return Ok(None);
    };
    let path =
        std::path::absolute(&path).with_context(|| format!("finding `{}`", path.display()))?;
    Ok(Some(path))
}

type Variables = Vec<(&'static str, String)>;

fn variables(key: &str, info: &E2bInfo, certificate: Option<&Path>) -> Variables {
    let mut variables = vec![("E2B_API_KEY", key.to_owned())];
    match info.is_domain_enough {
        true => variables.push(("E2B_DOMAIN", info.domain.clone())),
        false => variables.extend([
            ("E2B_API_URL", info.url.clone()),
            ("E2B_SANDBOX_URL", info.url.clone()),
            // The SDKs read volume contents from a separate address.
            ("E2B_VOLUME_API_URL", info.url.clone()),
        ]),
    }
    if let Some(path) = certificate {
        let path = path.display().to_string();
        variables.push(("SSL_CERT_FILE", path.clone()));
        variables.push(("NODE_EXTRA_CA_CERTS", path));
    }
    variables
}

/// Shell commands. With a domain they unset the URL variables, which would take precedence.
fn lines(variables: &Variables, info: &E2bInfo) -> Vec<String> {
    let mut lines: Vec<String> = variables
        .iter()
        .map(|(name, value)| format!("export {name}={}", shell_quote(value)))
        .collect();
    if info.is_domain_enough {
        lines.push("unset E2B_API_URL E2B_SANDBOX_URL E2B_VOLUME_API_URL".to_owned());
    }
    lines
}

fn as_object(variables: &Variables) -> Map<String, Value> {
    let entry = |(name, value): &(&str, String)| ((*name).to_owned(), value.clone().into());
    variables.iter().map(entry).collect()
}

/// Quotes a text as one literal word of a POSIX shell.
pub(super) fn shell_quote(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(url: &str, domain: &str, is_domain_enough: bool) -> E2bInfo {
        E2bInfo {
            url: url.to_owned(),
            domain: domain.to_owned(),
            is_domain_enough,
            has_listener: true,
        }
    }

    #[test]
    fn without_a_domain_the_urls_are_exported() {
        let info = info("http://127.0.0.1:8101", "localhost:8101", false);
        assert_eq!(
            lines(&variables("e2b_0", &info, None), &info),
            [
                "export E2B_API_KEY=e2b_0",
                "export E2B_API_URL=http://127.0.0.1:8101",
                "export E2B_SANDBOX_URL=http://127.0.0.1:8101",
                "export E2B_VOLUME_API_URL=http://127.0.0.1:8101",
            ]
        );
    }

    #[test]
    fn with_a_domain_the_url_variables_are_unset() {
        let info = info("https://api.sbx.test:8443", "sbx.test:8443", true);
        let variables = variables("e2b_0", &info, Some(Path::new("/my certs/ca.pem")));
        assert_eq!(
            lines(&variables, &info),
            [
                "export E2B_API_KEY=e2b_0",
                "export E2B_DOMAIN=sbx.test:8443",
                "export SSL_CERT_FILE='/my certs/ca.pem'",
                "export NODE_EXTRA_CA_CERTS='/my certs/ca.pem'",
                "unset E2B_API_URL E2B_SANDBOX_URL E2B_VOLUME_API_URL",
            ]
        );
    }

    #[test]
    fn a_quoted_text_is_one_literal_word() {
        for text in [
            "", "a b", "$(id)", "`id`", "it's", "a\nb", "a;b", "~", "*", "\\",
        ] {
            let script = format!("printf %s {}", shell_quote(text));
            let output = std::process::Command::new("sh")
                .args(["-c", &script])
                .output();
            assert_eq!(output.unwrap().stdout, text.as_bytes(), "{text:?}");
        }
    }
}
