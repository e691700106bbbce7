//! Options of every command: the data directory and the server.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use sandyard_client::{Client, ClientConfig};
use sandyard_engine::{DataDir, Engine, EngineConfig};

use crate::{output, port_owner};

/// URL of a server with default settings.
pub(crate) const DEFAULT_URL: &str = "http://127.0.0.1:8100";
/// Maximum size of the key file.
const MAX_KEY_BYTES: u64 = 4096;

/// Options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Data directory [env: SANDYARD_DATA_DIR] [default: /var/lib/sandyard for root, otherwise ~/.local/share/sandyard]
    #[arg(long, global = true, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// URL of the server [env: SANDYARD_URL] [default: http://127.0.0.1:8100]
    #[arg(long, global = true, value_name = "URL")]
    url: Option<String>,
    /// PEM file with CA certificates to trust, for a server with a self-signed certificate [env: SANDYARD_CA_CERT]
    #[arg(long, global = true, value_name = "FILE")]
    ca_cert: Option<PathBuf>,
}

impl Global {
    /// The value of --data-dir.
    pub(crate) fn data_dir_option(&self) -> Option<&Path> {
        self.data_dir.as_deref()
    }

    /// The data directory to use.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.configured_data_dir().unwrap_or_else(default_data_dir)
    }

    /// The data directory, if an option or the environment names it.
    pub(crate) fn configured_data_dir(&self) -> Option<PathBuf> {
        let option = self.data_dir.clone();
        option.or_else(|| path_variable("SANDYARD_DATA_DIR"))
    }

    /// Connects to the engine. Starts its launcher if none is running.
    pub(crate) async fn engine(&self) -> anyhow::Result<Engine> {
        let data_dir =
            std::path::absolute(self.data_dir()).context("resolving the data directory")?;
        Ok(Engine::connect(EngineConfig::new(data_dir)).await?)
    }

    /// The server's URL, if an option or the environment names it.
    pub(crate) fn configured_url(&self) -> Option<String> {
        self.url.clone().or_else(|| text_variable("SANDYARD_URL"))
    }

    /// The file with CA certificates to trust.
    pub(crate) fn ca_cert(&self) -> Option<PathBuf> {
        let option = self.ca_cert.clone();
        option.or_else(|| path_variable("SANDYARD_CA_CERT"))
    }

    /// A client of the server, not yet connected.
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        let url = self
            .configured_url()
            .unwrap_or_else(|| DEFAULT_URL.to_owned());
        let ca_pem = self.ca_cert().map(|path| {
            std::fs::read(&path).with_context(|| format!("reading `{}`", path.display()))
        });
        let mut config = ClientConfig {
            url,
            key: text_variable("SANDYARD_API_KEY"),
            ca_pem: ca_pem.transpose()?,
        };
        let client = Client::with_config(config.clone())?;
        // Send the admin key only to the server of this host.
        if config.key.is_some() || !client.is_loopback() {
            return Ok(client);
        }
        let path = self.data_dir().join("admin.key");
        let Some((key, owner)) = read_key(&path) else {
            return Ok(client);
        };
        // Another user's program may listen on the port. These users can read the key anyway.
        let trusted = [0, rustix::process::geteuid().as_raw(), owner];
        if let Err(error) = port_owner::check(client.server_port(), &trusted) {
            output::note(format!(
                "not sending the admin key in `{}`: {error:#}",
                path.display()
            ));
            return Ok(client);
        }
        config.key = Some(key);
        Ok(Client::with_config(config)?)
    }
}

/// The data directory of this user.
pub(crate) fn default_data_dir() -> PathBuf {
    let is_root = rustix::process::geteuid().is_root();
    DataDir::default_for_user(
        is_root,
        path_variable("XDG_DATA_HOME"),
        path_variable("HOME"),
    )
}

/// The key in a file and the file's owner, if the file is readable.
fn read_key(path: &Path) -> Option<(String, u32)> {
    let metadata = std::fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > MAX_KEY_BYTES {
        return None;
    }
    let key = std::fs::read_to_string(path).ok()?.trim().to_owned();
    (!key.is_empty()).then(|| (key, metadata.uid()))
}

fn path_variable(name: &str) -> Option<PathBuf> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    value.map(PathBuf::from)
}

fn text_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
