//! TLS with both sides.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::ServerName;
use rustls::server::{Acceptor, NoServerSessionStorage, ResolvesServerCertUsingSni};
use rustls::sign::SingleCertAndKey;
use sandyard_core::Clock;
use sandyard_tls::{Authority, AuthoritySpec};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{LazyConfigAcceptor, StartHandshake, TlsConnector, client};

use super::certificates::Certificates;
use super::sandbox_ca;
use super::trust::Trust;
use super::versions::Protocol;
use crate::settings::{GatewayError, GatewaySettings};

/// Time limit of a TLS handshake.
const HANDSHAKE_TIME: Duration = Duration::from_secs(30);

/// This installation's certificate authority, and TLS settings for both sides. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Tls(Arc<Inner>);

struct Inner {
    certificates: Certificates,
    /// The authority's certificate and those of the operator.
    sandbox_pem: String,
    trust: Trust,
    /// Settings for programs, without a certificate.
    server: ServerConfig,
}

impl Tls {
    /// Opens the authority in its folder, created when missing, and reads the trusted roots.
    pub(crate) fn open(settings: &GatewaySettings) -> Result<Self, GatewayError> {
        let folder = &settings.folder;
        let now_ms = Clock::System.now_ms();
        let spec = AuthoritySpec {
            common_name: None,
            permitted_names: &[],
            made_ms: now_ms,
        };
        let authority = Authority::open(folder, spec, now_ms)?;
        let sandbox_ca = settings.sandbox_ca.as_deref();
        let pem = sandbox_ca::install(folder, sandbox_ca)?;
        Ok(Self(Arc::new(Inner {
            sandbox_pem: format!("{}{pem}", authority.certificate_pem()),
            certificates: Certificates::new(authority)?,
            trust: Trust::open([settings.trusted_ca.as_deref(), sandbox_ca])?,
            server: server_config(),
        })))
    }

    /// The certificates that sandboxes must trust, in PEM: the authority's, then those of the operator.
    pub(crate) fn sandbox_pem(&self) -> &str {
        &self.0.sandbox_pem
    }

    /// Reads a program's hello.
    pub(super) async fn hello<S>(program: S) -> io::Result<StartHandshake<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        within_time(LazyConfigAcceptor::new(Acceptor::default(), program)).await
    }

    /// Completes the handshake of a program's hello.
    pub(super) async fn accept<S>(
        &self,
        hello: StartHandshake<S>,
        name: &str,
        protocol: Option<Protocol>,
    ) -> Result<TlsStream<S>, String>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let certified = self.0.certificates.of(name);
        let certified =
            certified.map_err(|error| format!("no certificate for `{name}`: {error}"))?;
        let mut config = self.0.server.clone();
        config.cert_resolver = Arc::new(SingleCertAndKey::from(certified));
        config.alpn_protocols = protocol
            .map(|protocol| protocol.id().to_vec())
            .into_iter()
            .collect();
        let accepted = within_time(hello.into_stream(Arc::new(config))).await;
        // A program may have its own list of authorities, or pin a certificate.
        accepted.map_err(|error| {
            format!("the program rejected the gateway's certificate for `{name}`: {error}. It must use the system's CA certificates")
        })
    }

    /// Opens TLS to the host, and verifies its certificate.
    pub(super) async fn connect(
        &self,
        stream: TcpStream,
        name: &str,
        offers: &[Protocol],
    ) -> Result<client::TlsStream<TcpStream>, String> {
        let server = ServerName::try_from(name.to_owned());
        let server =
            server.map_err(|_| format!("`{name}` is not a valid name for a certificate"))?;
        let offers = offers
            .iter()
            .map(|protocol| protocol.id().to_vec())
            .collect();
        let connector = TlsConnector::from(self.0.trust.config(offers));
        let connected = within_time(connector.connect(server, stream)).await;
        connected.map_err(|error| self.0.trust.explain(name, &error))
    }
}

sandyard_core::debug_fields!(Tls);

async fn within_time<T>(handshake: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let done = timeout(HANDSHAKE_TIME, handshake).await;
    done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

fn server_config() -> ServerConfig {
    let mut config = sandyard_tls::server_builder()
        .with_cert_resolver(Arc::new(ResolvesServerCertUsingSni::new()));
    // Each connection belongs to one outside connection, so a session cannot be resumed.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config
}
