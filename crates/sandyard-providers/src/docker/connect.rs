//! Connects to a daemon as the settings say.

use std::path::Path;

use bollard::{API_DEFAULT_VERSION, Docker as Daemon};
use sandyard_provider::{ProviderError, ProviderErrorKind};

use super::config::DockerConfig;
use super::connection::DaemonConnection;
use super::error::{DaemonResult, unreachable};

/// Docker's default address.
const DEFAULT_HOST: &str = "unix:///var/run/docker.sock";

/// Added to the longest timeout of a call: each call has its own, shorter one.
const GRACE_SECONDS: u64 = 60;

/// A client of the daemon in a common protocol version, and the connection for other requests.
pub(super) async fn connect_daemon(
    config: &DockerConfig,
) -> DaemonResult<(Daemon, DaemonConnection)> {
    let connection = daemon_connection(config)?;
    let seconds = config.timeouts.copy.as_secs() + GRACE_SECONDS;
    let shared = connection.clone();
    let transport = move |request| {
        let connection = shared.clone();
        async move { connection.request(request).await }
    };
    // The transport ignores the address; the client needs one to form URLs.
    let address = Some("http://docker");
    let client =
        Daemon::connect_with_custom_transport(transport, address, seconds, API_DEFAULT_VERSION)?;
    Ok((client.negotiate_version().await?, connection))
}

/// The limitation to report when the daemon is remote and has no TLS.
pub(super) fn limitations(config: &DockerConfig) -> Option<String> {
    let (_, address) = scheme_and_address(config.host.as_deref()?)?;
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let is_local = matches!(host, "localhost" | "[::1]") || host.starts_with("127.");
    (config.cert_path.is_none() && !is_local).then(|| {
        "the connection to the daemon uses no TLS: the network can read and change requests"
            .to_owned()
    })
}

/// Scheme and address of a daemon on the network.
fn scheme_and_address(host: &str) -> Option<(&str, &str)> {
    let parts = host.split_once("://");
    parts.filter(|(scheme, _)| matches!(*scheme, "tcp" | "http" | "https"))
}

fn daemon_connection(config: &DockerConfig) -> DaemonResult<DaemonConnection> {
    let host = match config.host.as_deref() {
        None | Some("") => DEFAULT_HOST,
        Some(host) => host,
    };
    let socket = host.strip_prefix("unix://").unwrap_or(host);
    if socket.starts_with('/') {
        if !Path::new(socket).exists() {
            let message = format!("there is no Docker socket at `{host}`");
            return Err(unreachable(message).into());
        }
        return Ok(DaemonConnection::socket(Path::new(socket)));
    }
    let invalid_address = || {
        let message = format!("`{host}` is not a valid address of a Docker daemon");
        let hint = "use `unix:///var/run/docker.sock` or `tcp://host:2376`";
        let error = ProviderError::new(ProviderErrorKind::Invalid, message);
        error.hint(Some(hint.to_owned()))
    };
    let (scheme, address) = scheme_and_address(host).ok_or_else(invalid_address)?;
    let Some(folder) = &config.cert_path else {
        if scheme == "https" {
            let message = format!("`{host}` requires TLS, but no certificates are configured");
            let hint = "set DOCKER_CERT_PATH to the folder of `key.pem`, `cert.pem` and `ca.pem`, with DOCKER_TLS_VERIFY=1";
            let error = ProviderError::new(ProviderErrorKind::Invalid, message);
            return Err(error.hint(Some(hint.to_owned())).into());
        }
        return DaemonConnection::port(address).ok_or_else(|| invalid_address().into());
    };
    DaemonConnection::secure(address, folder).map_err(|error| {
        let message = format!("the certificates for Docker at `{host}` are not valid");
        let folder = folder.display();
        let hint = format!("`key.pem`, `cert.pem` and `ca.pem` must be in `{folder}`, in PEM");
        let failure = ProviderError::new(ProviderErrorKind::Unavailable, message);
        failure.hint(Some(hint)).source(error).into()
    })
}
