//! Options of every command: the data directory and the server.

use std::io::ErrorKind::PermissionDenied;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context as _, bail};
use clap::Args;
use rustix::fs::{Access, access};
use rustix::io::Errno;
use sandyard_client::{Client, ClientConfig};
use sandyard_engine::{DataDir, Engine, EngineConfig};

use crate::contexts::{self, Contexts, Login};
use crate::{output, port_owner};

/// URL of a server with default settings.
pub(crate) const DEFAULT_URL: &str = "http://127.0.0.1:8100";
/// Maximum size of the key file.
const MAX_KEY_BYTES: u64 = 4096;

/// Options of every command.
#[derive(Debug, Default, Args)]
pub(crate) struct Global {
    /// Data directory [env: SANDYARD_DATA_DIR] [default: ~/.local/share/sandyard, for root /var/lib/sandyard]
    #[arg(long, global = true, hide = true, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// URL of the server [env: SANDYARD_URL] [default: http://127.0.0.1:8100]
    #[arg(long, global = true, hide = true, value_name = "URL")]
    url: Option<String>,
    /// PEM file with CA certificates to trust [env: SANDYARD_CA_CERT]
    #[arg(long, global = true, hide = true, value_name = "FILE")]
    ca_cert: Option<PathBuf>,
    /// Server to use, by the name given with `sandyard login` [env: SANDYARD_CONTEXT] [default: the current context]
    #[arg(long, global = true, hide = true, value_name = "NAME")]
    context: Option<String>,
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
        check_writable(&data_dir)?;
        Ok(Engine::connect(EngineConfig::new(data_dir)).await?)
    }

    /// The server's URL, if an option or the environment names it.
    pub(crate) fn configured_url(&self) -> Option<String> {
        self.url.clone().or_else(|| text_variable("SANDYARD_URL"))
    }

    /// The file with CA certificates to trust. On the server's host, the certificate that the server made itself needs no option.
    pub(crate) fn ca_cert(&self) -> Option<PathBuf> {
        let option = self.ca_cert.clone();
        option
            .or_else(|| path_variable("SANDYARD_CA_CERT"))
            .or_else(|| {
                let tls = self.data_dir().join("tls");
                let made = ["ca.pem", "certificate.pem"].map(|name| tls.join(name));
                made.into_iter()
                    .find(|path| std::fs::File::open(path).is_ok())
            })
    }

    /// The file with the servers that the user logged in to, and its content.
    pub(crate) fn contexts(&self) -> anyhow::Result<(PathBuf, Contexts)> {
        let path = contexts::path(path_variable("XDG_CONFIG_HOME"), path_variable("HOME"));
        let path = path.context("HOME is not set")?;
        let contexts = Contexts::load(&path)?;
        Ok((path, contexts))
    }

    /// The server to use, if the user logged in to it.
    fn login(&self) -> anyhow::Result<Option<Login>> {
        let name = self
            .context
            .clone()
            .or_else(|| text_variable("SANDYARD_CONTEXT"));
        let contexts = match (&name, self.contexts()) {
            (_, Ok((_, contexts))) => contexts,
            (Some(_), Err(error)) => return Err(error),
            (None, Err(error)) => {
                // Without HOME nobody logged in.
                if path_variable("HOME").is_some() {
                    output::note(format!("warning: {error:#}"));
                }
                return Ok(None);
            }
        };
        if let Some(name) = name {
            let login = contexts.contexts.get(&name).cloned();
            let login = login
                .with_context(|| format!("no context `{name}`; `sandyard context ls` lists them"));
            return login.map(Some);
        }
        Ok(match self.configured_url() {
            Some(url) => contexts
                .contexts
                .into_values()
                .find(|login| login.url == url.trim_end_matches('/')),
            // The data directory names the server of this host.
            None if self.configured_data_dir().is_some() => None,
            None => contexts
                .current
                .and_then(|name| contexts.contexts.get(&name).cloned()),
        })
    }

    /// A client of the server, not yet connected.
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        let login = self.login()?;
        let named_url = match self.context {
            Some(_) => None,
            None => self.configured_url(),
        };
        let url = named_url
            .or_else(|| login.as_ref().map(|login| login.url.clone()))
            .unwrap_or_else(|| DEFAULT_URL.to_owned());
        let ca_pem = match login.as_ref().and_then(|login| login.ca_pem.clone()) {
            Some(pem) if self.ca_cert.is_none() => Some(pem.into_bytes()),
            _ => {
                let path = self.ca_cert().filter(|_| url.starts_with("https:"));
                let read = path.map(|path| {
                    std::fs::read(&path).with_context(|| format!("reading `{}`", path.display()))
                });
                read.transpose()?
            }
        };
        let key = match self.context {
            Some(_) => None,
            None => text_variable("SANDYARD_API_KEY"),
        };
        let mut config = ClientConfig {
            url,
            key: key.or_else(|| login.map(|login| login.key)),
            ca_pem,
        };
        let client = Client::with_config(config.clone())?;
        if config.key.is_some() {
            return Ok(client);
        }
        let path = self.data_dir().join("admin.key");
        let Some((key, owner)) = read_key(&path) else {
            if std::fs::File::open(&path).is_err_and(|error| error.kind() == PermissionDenied) {
                let _ = MISSING_KEY_REASON.set(format!(
                    "`{}` is not readable for you: ask an admin for a key, then run `sandyard login`",
                    path.display()
                ));
            }
            return Ok(client);
        };
        // Send the admin key only to the server of this host.
        if !client.is_loopback() {
            let _ = MISSING_KEY_REASON.set(format!(
                "run `sandyard login` or set SANDYARD_API_KEY; the admin key in `{}` is sent to loopback addresses only",
                path.display()
            ));
            return Ok(client);
        }
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

/// Why the last client was created without a key, and what to do about it.
pub(crate) fn missing_key_reason() -> Option<String> {
    MISSING_KEY_REASON.get().cloned()
}

static MISSING_KEY_REASON: OnceLock<String> = OnceLock::new();

/// Fails if this user cannot write to the data directory, or to the directory in which it would be created.
fn check_writable(data_dir: &Path) -> anyhow::Result<()> {
    for path in data_dir.ancestors() {
        match access(path, Access::WRITE_OK | Access::EXEC_OK) {
            Err(Errno::NOENT) => {}
            Err(Errno::ACCESS | Errno::ROFS) => bail!(
                "cannot write to the data directory `{}`; --data-dir DIR names another one",
                data_dir.display()
            ),
            _ => break,
        }
    }
    Ok(())
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
