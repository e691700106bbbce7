//! `sandyard serve`.

use std::io::{ErrorKind, IsTerminal as _};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use sandyard_client::Client;
use sandyard_server::listen::BindError;
use sandyard_server::serve::{Address, ServeError, Started, init_logging, serve as run_server};
use serde_json::json;

use super::e2b::shell_quote;
use super::settings::SettingFlags;
use crate::global::{DEFAULT_URL, Global, default_data_dir};
use crate::output::{self, Format};

/// How long a program on our port may take to say whether it is a Sandyard server.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
#[command(
    after_help = "Every setting has a default. Settings come from options, environment variables, `.env` in the working directory and a \
configuration file. `sandyard config show` prints the settings in effect; `sandyard config example` prints a configuration \
file. SIGTERM and Ctrl-C stop the server. Sandboxes keep running, and the next server continues with them. The first line on \
standard output is the server's URL."
)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    settings: SettingFlags,
    #[command(flatten)]
    format: Format,
}

/// Runs the server until it gets a signal to stop.
pub(crate) async fn serve(global: &Global, args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let loaded = args.settings.load(global)?;
    init_logging(&loaded.settings.log)?;
    for warning in &loaded.warnings {
        output::note(format!("warning: {warning}"));
    }
    sandyard_engine::protect_process();
    let format = args.format;
    let outcome = run_server(loaded.settings, |started| announce(started, format)).await;
    if let Err(ServeError::Bind(BindError {
        address, source, ..
    })) = &outcome
        && source.kind() == ErrorKind::AddrInUse
        && let Some(version) = sandyard_version(address).await
    {
        bail!(
            "a Sandyard server ({version}) listens on {address} already; end it, or choose another port with `--port`"
        );
    }
    outcome.context("cannot start the server")?;
    Ok(ExitCode::SUCCESS)
}

/// The version of the Sandyard server at an address, if it is one.
async fn sandyard_version(address: &SocketAddr) -> Option<String> {
    let client = Client::new(&format!("http://{address}"), None).ok()?;
    let health = tokio::time::timeout(PROBE_TIMEOUT, client.health()).await;
    Some(health.ok()?.ok()?.version).filter(|version| !version.is_empty())
}

/// Prints where the server listens. The first line of standard output is the URL, for programs.
///
/// The admin key is printed only on a terminal. Otherwise it would end up in a log that other people can read.
fn announce(started: &Started, format: Format) {
    let key = started
        .admin_key
        .as_deref()
        .filter(|_| std::io::stdout().is_terminal());
    if format.json {
        let urls: Vec<String> = started.addresses.iter().map(Address::url).collect();
        let about = json!({
            "url": urls.first(),
            "urls": urls,
            "e2b_url": started.e2b_url,
            "certificate": started.certificate,
            "admin_key": key,
            "admin_key_file": started.admin_key_file,
            "data_dir": started.data_dir,
        });
        output::line(about.to_string());
        return;
    }
    for line in summary_lines(started, key) {
        output::line(line);
    }
}

fn summary_lines(started: &Started, key: Option<&str>) -> Vec<String> {
    let urls: Vec<String> = started.addresses.iter().map(Address::url).collect();
    let url = urls.first().map_or("-", String::as_str);
    let mut lines = vec![format!("sandyard {} at {url}", env!("CARGO_PKG_VERSION"))];
    for more in urls.iter().skip(1) {
        lines.push(format!("  also at    {more}"));
    }
    lines.push(format!("  docs       {url}/docs"));
    lines.push(format!("  E2B        {}", started.e2b_url));
    lines.push(format!("             {}", e2b_env_command(started, url)));
    if let Some(certificate) = &started.certificate {
        lines.push(format!("  trust      {}", certificate.display()));
    }
    lines.push(format!("  data       {}", started.data_dir.display()));
    lines.push(format!("  store      {}", started.store));
    lines.push(format!("  sandboxes  {}", started.provider));
    match key {
        Some(key) => {
            lines.push(format!("  admin key  {key}"));
            lines.push(format!(
                "             printed only once; stored in {}",
                started.admin_key_file.display()
            ));
        }
        None if started.admin_key_file.exists() => lines.push(format!(
            "  admin key  in {}",
            started.admin_key_file.display()
        )),
        None => lines.push(
            "  admin key  created by the first server of this store; `sandyard key add` there creates another"
                .to_owned(),
        ),
    }
    let create = client_command("sandyard create", started, url);
    lines.push(format!(
        "  try        {create}   (in a checkout: ./run create)"
    ));
    for warning in [started.e2b_warning.clone(), started.warning()]
        .into_iter()
        .flatten()
    {
        lines.push(String::new());
        lines.push(format!("  {warning}"));
    }
    lines
}

/// The shell command that makes programs written for E2B use this server.
fn e2b_env_command(started: &Started, url: &str) -> String {
    let mut command = client_command("sandyard e2b env", started, url);
    if let Some(certificate) = &started.certificate {
        let certificate = certificate.display().to_string();
        command += &format!(" --ca-cert {}", shell_quote(&certificate));
    }
    format!("eval \"$({command})\"")
}

/// A command with the options that lead it to this server.
fn client_command(command: &str, started: &Started, url: &str) -> String {
    let mut command = vec![command.to_owned()];
    if url != DEFAULT_URL {
        command.push(format!("--url {url}"));
    }
    if started.data_dir != default_data_dir() {
        let folder = started.data_dir.display().to_string();
        command.push(format!("--data-dir {}", shell_quote(&folder)));
    }
    command.join(" ")
}
