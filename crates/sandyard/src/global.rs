//! What every command takes: where the data is, and which server to talk to.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use sandyard_client::{Client, ClientConfig};
use sandyard_engine::{DataDir, Engine, EngineConfig};

use crate::{listeners, output};

/// Where a server is that was started with nothing configured.
pub(crate) const DEFAULT_URL: &str = "http://127.0.0.1:8100";
/// The largest file that can be a key.
const MAX_KEY_BYTES: u64 = 4096;

/// What every command takes.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Where everything is kept [env: SANDYARD_DATA_DIR] [default: /var/lib/sandyard for root, else ~/.local/share/sandyard]
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        help_heading = "Global options"
    )]
    data_dir: Option<PathBuf>,
    /// The server to talk to [env: SANDYARD_URL] [default: http://127.0.0.1:8100]
    #[arg(
        long,
        global = true,
        value_name = "URL",
        help_heading = "Global options"
    )]
    url: Option<String>,
    /// A file with certificates to trust, in PEM, for a server that made its own [env: SANDYARD_CA_CERT]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        help_heading = "Global options"
    )]
    ca_cert: Option<PathBuf>,
}

impl Global {
    /// The data directory as the command line names it.
    pub(crate) fn named_data_dir(&self) -> Option<&Path> {
        self.data_dir.as_deref()
    }

    /// The data directory in force.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.chosen_data_dir().unwrap_or_else(default_data_dir)
    }

    /// The data directory, if the command line or the environment names one.
    pub(crate) fn chosen_data_dir(&self) -> Option<PathBuf> {
        let named = self.data_dir.clone();
        named.or_else(|| variable("SANDYARD_DATA_DIR"))
    }

    /// Reaches the engine, starting its launcher if need be.
    pub(crate) async fn engine(&self) -> anyhow::Result<Engine> {
        let data_dir =
            std::path::absolute(self.data_dir()).context("finding the data directory")?;
        Ok(Engine::connect(EngineConfig::new(data_dir)).await?)
    }

    /// The server's address, if the command line or the environment names one.
    pub(crate) fn named_url(&self) -> Option<String> {
        self.url.clone().or_else(|| text("SANDYARD_URL"))
    }

    /// The file with certificates to trust.
    pub(crate) fn ca_cert(&self) -> Option<PathBuf> {
        let named = self.ca_cert.clone();
        named.or_else(|| variable("SANDYARD_CA_CERT"))
    }

    /// A client of the server. Nothing is connected to yet.
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        let url = self.named_url().unwrap_or_else(|| DEFAULT_URL.to_owned());
        let ca_pem = self.ca_cert().map(|path| {
            std::fs::read(&path).with_context(|| format!("reading `{}`", path.display()))
        });
        let mut config = ClientConfig {
            url,
            key: text("SANDYARD_API_KEY"),
            ca_pem: ca_pem.transpose()?,
        };
        let client = Client::with_config(config.clone())?;
        // The admin's key is for the server of this host, and only for that.
        if config.key.is_some() || !client.is_loopback() {
            return Ok(client);
        }
        let path = self.data_dir().join("admin.key");
        let Some((key, owner)) = read_key(&path) else {
            return Ok(client);
        };
        // Whoever opened the port first would get it; these have it already.
        let trusted = [0, rustix::process::geteuid().as_raw(), owner];
        if let Err(error) = listeners::check(client.server_port(), &trusted) {
            output::note(format!("`{}` is not used: {error:#}", path.display()));
            return Ok(client);
        }
        config.key = Some(key);
        Ok(Client::with_config(config)?)
    }
}

/// Where the data is when nobody says.
pub(crate) fn default_data_dir() -> PathBuf {
    let is_root = rustix::process::geteuid().is_root();
    DataDir::default_for_user(is_root, variable("XDG_DATA_HOME"), variable("HOME"))
}

/// The key in a file and whose file it is, if we may read it.
fn read_key(path: &Path) -> Option<(String, u32)> {
    let metadata = std::fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > MAX_KEY_BYTES {
        return None;
    }
    let key = std::fs::read_to_string(path).ok()?.trim().to_owned();
    (!key.is_empty()).then(|| (key, metadata.uid()))
}

fn variable(name: &str) -> Option<PathBuf> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
