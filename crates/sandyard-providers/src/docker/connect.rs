//! The way to a daemon, by what the settings say of it.

use std::path::Path;

use bollard::{API_DEFAULT_VERSION, Docker as Daemon};
use sandyard_provider::{ProviderError, ProviderErrorKind};

use super::config::DockerConfig;
use super::connection::DaemonConnection;
use super::error::{DaemonResult, unreachable};

/// Where Docker listens when nobody says otherwise.
const USUAL: &str = "unix:///var/run/docker.sock";

/// Longer than any call takes: each is bounded by whoever makes it.
const BEYOND: u64 = 60;

/// A client of the daemon in the words it understands, and the way to it.
pub(super) async fn reach(config: &DockerConfig) -> DaemonResult<(Daemon, DaemonConnection)> {
    let line = line(config)?;
    let seconds = config.timeouts.copy.as_secs() + BEYOND;
    let way = line.clone();
    let transport = move |request| {
        let way = way.clone();
        async move { way.request(request).await }
    };
    // The address is the line's business; this one only makes a whole of what is asked.
    let address = Some("http://docker");
    let client =
        Daemon::connect_with_custom_transport(transport, address, seconds, API_DEFAULT_VERSION)?;
    Ok((client.negotiate_version().await?, line))
}

/// What is said when the daemon's address itself is no good, or not safe.
pub(super) fn limitations(config: &DockerConfig) -> Option<String> {
    let (_, address) = scheme_and_address(config.host.as_deref()?)?;
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let is_near = matches!(host, "localhost" | "[::1]") || host.starts_with("127.");
    (config.cert_path.is_none() && !is_near).then(|| {
        "anybody on the way to the daemon can read and change what is said: there is no TLS"
            .to_owned()
    })
}

/// Of a daemon that is reached by network.
fn scheme_and_address(host: &str) -> Option<(&str, &str)> {
    let parts = host.split_once("://");
    parts.filter(|(scheme, _)| matches!(*scheme, "tcp" | "http" | "https"))
}

fn line(config: &DockerConfig) -> DaemonResult<DaemonConnection> {
    let host = match config.host.as_deref() {
        None | Some("") => USUAL,
        Some(host) => host,
    };
    let socket = host.strip_prefix("unix://").unwrap_or(host);
    if socket.starts_with('/') {
        if !Path::new(socket).exists() {
            let message = format!("there is no Docker at `{host}`");
            return Err(unreachable(message).into());
        }
        return Ok(DaemonConnection::socket(Path::new(socket)));
    }
    let no_address = || {
        let message = format!("`{host}` is no address of Docker's");
        let hint = "use `unix:///var/run/docker.sock` or `tcp://host:2376`";
        let error = ProviderError::new(ProviderErrorKind::Invalid, message);
        error.hint(Some(hint.to_owned()))
    };
    let (scheme, address) = scheme_and_address(host).ok_or_else(no_address)?;
    let Some(folder) = &config.cert_path else {
        if scheme == "https" {
            let message = format!("`{host}` wants TLS, and there are no certificates for it");
            let hint = "set DOCKER_CERT_PATH to the folder of `key.pem`, `cert.pem` and `ca.pem`, with DOCKER_TLS_VERIFY=1";
            let error = ProviderError::new(ProviderErrorKind::Invalid, message);
            return Err(error.hint(Some(hint.to_owned())).into());
        }
        return DaemonConnection::port(address).ok_or_else(|| no_address().into());
    };
    DaemonConnection::secure(address, folder).map_err(|error| {
        let message = format!("the certificates for Docker at `{host}` cannot be used");
        let folder = folder.display();
        let hint = format!("`key.pem`, `cert.pem` and `ca.pem` must be in `{folder}`, in PEM");
        let known = ProviderError::new(ProviderErrorKind::Unavailable, message);
        known.hint(Some(hint)).source(error).into()
    })
}
