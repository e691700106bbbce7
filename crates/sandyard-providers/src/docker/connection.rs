//! Connections to a daemon: to a Unix socket, to a port, to a port with TLS. Every request has its own connection, because some
//! become streams.
//! become streams.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bollard::errors::Error;
use bollard::{BollardRequest, body_full};
use bytes::Bytes;
use http::header::{HOST, HeaderValue};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use sandyard_agent_client::BoxedStream;
use sandyard_provider::ProviderErrorKind;
use sandyard_tls::roots;
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use super::error::{DaemonResult, fault, shorten};

/// Default ports without and with TLS.
const PORTS: (u16, u16) = (2375, 2376);

/// Connects to a daemon.
#[derive(Clone)]
pub(super) struct DaemonConnection(Arc<Address>);

enum Address {
    Socket(PathBuf),
    Port(String, u16),
    Secure(String, u16, ServerName<'static>, TlsConnector),
}

impl fmt::Debug for DaemonConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DaemonConnection")
            .field(&self.host())
            .finish()
    }
}

impl DaemonConnection {
    /// To a Unix socket on this host.
    pub(super) fn socket(path: &Path) -> Self {
        Self(Arc::new(Address::Socket(path.to_owned())))
    }

    /// To a port, without TLS.
    pub(super) fn port(address: &str) -> Option<Self> {
        let (host, port) = split(address, PORTS.0)?;
        Some(Self(Arc::new(Address::Port(host, port))))
    }

    /// To a port with TLS: the daemon's certificate must be signed by `ca.pem` and nothing else, and gets this client's
    /// certificate.
    pub(super) fn secure(address: &str, folder: &Path) -> io::Result<Self> {
        let invalid =
            |message: &str| io::Error::new(io::ErrorKind::InvalidInput, message.to_owned());
        let (host, port) = split(address, PORTS.1).ok_or_else(|| invalid("not a valid address"))?;
        let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
        let read = |file: &str| std::fs::read(folder.join(file));
        let mut roots = RootCertStore::empty();
        roots::add_pem(&mut roots, &read("ca.pem")?).map_err(io::Error::other)?;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read("cert.pem")?).collect();
        let key = PrivateKeyDer::from_pem_slice(&read("key.pem")?).map_err(io::Error::other)?;
        let config = roots::client_builder(roots)
            .with_client_auth_cert(chain.map_err(io::Error::other)?, key)
            .map_err(io::Error::other)?;
        let connector = TlsConnector::from(Arc::new(config));
        Ok(Self(Arc::new(Address::Secure(host, port, name, connector))))
    }

    fn host(&self) -> String {
        match self.0.as_ref() {
            Address::Socket(_) => "docker".to_owned(),
            Address::Port(host, port) | Address::Secure(host, port, ..) if host.contains(':') => {
                format!("[{host}]:{port}")
            }
            Address::Port(host, port) | Address::Secure(host, port, ..) => format!("{host}:{port}"),
        }
    }

    async fn dial(&self) -> io::Result<BoxedStream> {
        let connect = async |host: &str, port| {
            let stream = TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            Ok::<_, io::Error>(stream)
        };
        Ok(match self.0.as_ref() {
            Address::Socket(path) => Box::new(UnixStream::connect(path).await?),
            Address::Port(host, port) => Box::new(connect(host, *port).await?),
            Address::Secure(host, port, name, connector) => {
                let stream = connect(host, *port).await?;
                Box::new(connector.connect(name.clone(), stream).await?)
            }
        })
    }

    /// Sends one request.
    pub(super) async fn request(
        &self,
        mut request: BollardRequest,
    ) -> Result<Response<Incoming>, Error> {
        let path = request.uri().path_and_query().cloned();
        *request.uri_mut() = path.map_or_else(|| Uri::from_static("/"), Uri::from);
        let host = HeaderValue::try_from(self.host()).map_err(http::Error::from)?;
        request.headers_mut().insert(HOST, host);
        let stream = TokioIo::new(self.dial().await?);
        let (mut sender, connection) = http1::handshake(stream).await?;
        tokio::spawn(async move {
            // The reader of the response sees the error of a broken connection.
            let _ = connection.with_upgrades().await;
        });
        Ok(sender.send_request(request).await?)
    }

    /// Sends a GET request and reads at most `max_bytes` of the response.
    pub(super) async fn read(&self, path: &str, max_bytes: usize) -> DaemonResult<Bytes> {
        let request = Request::get(path).body(body_full(Bytes::new()));
        let response = self.request(request.map_err(Error::from)?).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), max_bytes)
            .collect()
            .await;
        let body = match body {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                let message = format!("Docker's answer has more than {} MiB", max_bytes >> 20);
                return Err(fault(ProviderErrorKind::Failed, message));
            }
            Err(error) => return Err(Error::from(io::Error::other(error)).into()),
        };
        if status.is_success() {
            return Ok(body);
        }
        let error_body = serde_json::from_slice::<serde_json::Value>(&body).unwrap_or_default();
        let message = error_body["message"].as_str().unwrap_or_default();
        Err(Error::DockerResponseServerError {
            status_code: status.as_u16(),
            message: shorten(message),
        }
        .into())
    }
}

/// Host and port of an address without its scheme.
fn split(address: &str, default_port: u16) -> Option<(String, u16)> {
    let address = address.trim_end_matches('/');
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
        _ => (address, default_port),
    };
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let host = inner.unwrap_or(host);
    (!host.is_empty() && !host.contains('/')).then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_split() {
        let split = |address| split(address, 2375);
        let is = |host: &str, port| Some((host.to_owned(), port));
        assert_eq!(split("localhost:2376"), is("localhost", 2376));
        assert_eq!(split("docker.example/"), is("docker.example", 2375));
        assert_eq!(split("[::1]:80"), is("::1", 80));
        assert_eq!(split("[::1]"), is("::1", 2375));
        for invalid in ["", ":2375", "host:port", "host:1/path", "host/path"] {
            assert_eq!(split(invalid), None, "{invalid}");
        }
    }
}
