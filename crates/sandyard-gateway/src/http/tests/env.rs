//! What the tests have in common: authorities, grants, programs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use sandyard_core::network::{
    HostRule, NetworkGrant, NetworkPolicy, SecretGrant, SecretText, Transform,
};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::site::{SiteBody, full};
use crate::dial::{Dialled, WholeUrls};
use crate::http::{Host, HttpFailure, Tls, carry_plain, carry_tls};
use crate::settings::GatewaySettings;

pub(super) const NAME: &str = "api.example.com";
pub(super) const PLACEHOLDER: &str = "placeholder-of-token";
pub(super) const SECRET: &str = "s3cret/Value+0123456789";

pub(super) type LinkStream = JoinHandle<Result<(), HttpFailure>>;

/// A gateway's TLS, an authority for sites, and the grant that holds.
pub(super) struct TestEnv {
    pub(super) folder: TempDir,
    pub(super) tls: Tls,
    authority: CertifiedIssuer<'static, KeyPair>,
    grant: Arc<Mutex<Arc<NetworkGrant>>>,
}

impl TestEnv {
    /// With one secret, bound to [`NAME`].
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = site_authority();
        let trusted = folder.path().join("trusted.pem");
        std::fs::write(&trusted, authority.pem()).unwrap();
        let tls = Tls::open(&GatewaySettings {
            trusted_ca: Some(trusted),
            ..GatewaySettings::new(folder.path().join("gateway"))
        })
        .unwrap();
        let grant = grant(&[("token", PLACEHOLDER, SECRET, NAME)], &[]);
        Self {
            folder,
            tls,
            authority,
            grant: Arc::new(Mutex::new(Arc::new(grant))),
        }
    }

    pub(super) fn set(&self, grant: NetworkGrant) {
        *self.grant.lock().unwrap() = Arc::new(grant);
    }

    pub(super) fn authority_path(&self) -> PathBuf {
        self.folder.path().join("gateway/ca.pem")
    }

    /// What a site needs to speak TLS under a name that the gateway believes.
    pub(super) fn site_tls(&self, name: &str, protocols: &[&str]) -> TlsAcceptor {
        site_tls(&self.authority, &params(name), protocols)
    }

    /// The same with another certificate.
    pub(super) fn site_tls_of(
        &self,
        params: &CertificateParams,
        protocols: &[&str],
    ) -> TlsAcceptor {
        site_tls(&self.authority, params, protocols)
    }

    /// A connection of a program through the gateway to a site, not used yet.
    pub(super) async fn open(
        &self,
        site: SocketAddr,
        host: Host,
        is_tls: bool,
    ) -> (TcpStream, LinkStream) {
        self.open_by(site, host, is_tls, None).await
    }

    pub(super) async fn open_by(
        &self,
        site: SocketAddr,
        host: Host,
        is_tls: bool,
        whole_urls: Option<WholeUrls>,
    ) -> (TcpStream, LinkStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (program, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (program, program_side) = (program.unwrap(), accepted.unwrap().0);
        // As those of sandboxes are.
        program_side.set_nodelay(true).unwrap();
        program.set_nodelay(true).unwrap();
        let carried = self
            .carry(program_side, site, host, is_tls, whole_urls)
            .await;
        (program, carried)
    }

    pub(super) async fn carry<S>(
        &self,
        program_side: S,
        site: SocketAddr,
        host: Host,
        is_tls: bool,
        whole_urls: Option<WholeUrls>,
    ) -> LinkStream
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let stream = TcpStream::connect(site).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let site_side = Dialled {
            stream,
            address: Some(site.ip()),
            whole_urls,
        };
        let (tls, grant) = (self.tls.clone(), self.grant.clone());
        let grant = Arc::new(move || grant.lock().unwrap().clone());
        tokio::spawn(async move {
            match is_tls {
                true => carry_tls(&tls, program_side, site_side, host, grant).await,
                false => carry_plain(program_side, site_side, host, grant, None).await,
            }
        })
    }

    /// A program's TLS, which trusts the gateway's authority alone.
    pub(super) async fn hello<S>(
        &self,
        stream: S,
        name: &str,
        protocols: &[&str],
    ) -> std::io::Result<tokio_rustls::client::TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut roots = RootCertStore::empty();
        let pem = self.tls.sandbox_pem().as_bytes();
        roots
            .add(CertificateDer::from_pem_slice(pem).unwrap())
            .unwrap();
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = ids(protocols);
        let name = ServerName::try_from(name.to_owned()).unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
    }

    /// A program's connection over TLS in one version, ready for requests to [`NAME`].
    pub(super) async fn program(&self, site: SocketAddr, is_two: bool) -> (Sender, LinkStream) {
        let (stream, carried) = self.open(site, host(), true).await;
        let protocols: &[&str] = if is_two {
            &["h2", "http/1.1"]
        } else {
            &["http/1.1"]
        };
        let stream = self.hello(stream, NAME, protocols).await.unwrap();
        let chosen = stream.get_ref().1.alpn_protocol();
        assert_eq!(chosen, Some(if is_two { &b"h2"[..] } else { b"http/1.1" }));
        (Sender::new(stream, is_two).await, carried)
    }
}

/// Sends requests as a program does.
pub(super) enum Sender {
    Http1(http1::SendRequest<SiteBody>),
    Http2(http2::SendRequest<SiteBody>),
}

impl Sender {
    pub(super) async fn new<S>(stream: S, is_two: bool) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let stream = TokioIo::new(stream);
        match is_two {
            true => {
                let mut builder = http2::Builder::new(TokioExecutor::new());
                // The bounds are to be the gateway's.
                builder.max_header_list_size(1024 * 1024);
                let (sender, connection) = builder.handshake(stream).await.unwrap();
                tokio::spawn(connection);
                Self::Http2(sender)
            }
            false => {
                let builder = http1::Builder::new();
                let (sender, connection) = builder.handshake(stream).await.unwrap();
                tokio::spawn(connection.with_upgrades());
                Self::Http1(sender)
            }
        }
    }

    /// Sends a request; one to [`NAME`] if it names no host itself.
    pub(super) async fn send(
        &mut self,
        mut request: Request<SiteBody>,
    ) -> hyper::Result<Response<Incoming>> {
        match self {
            Self::Http1(sender) => {
                if !request.headers().contains_key("host") {
                    request.headers_mut().insert("host", NAME.parse().unwrap());
                }
                sender.ready().await?;
                sender.send_request(request).await
            }
            Self::Http2(sender) => {
                if request.uri().authority().is_none() {
                    let uri = format!("https://{NAME}{}", request.uri());
                    *request.uri_mut() = uri.parse().unwrap();
                }
                sender.ready().await?;
                sender.send_request(request).await
            }
        }
    }

    /// Asks for a path with one header, and returns the answer with its complete body.
    pub(super) async fn get(&mut self, path: &str, headers: &[(&str, &str)]) -> Response<Bytes> {
        collect_body(self.send(get(path, headers)).await.unwrap()).await
    }
}

pub(super) fn get(path: &str, headers: &[(&str, &str)]) -> Request<SiteBody> {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(full("")).unwrap()
}

pub(super) async fn collect_body(response: Response<Incoming>) -> Response<Bytes> {
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Response::from_parts(head, body)
}

pub(super) fn text(response: &Response<Bytes>) -> &str {
    std::str::from_utf8(response.body()).unwrap()
}

pub(super) fn host() -> Host {
    Host {
        name: NAME.to_owned(),
        port: 443,
    }
}

/// A grant of secrets (name, placeholder, value, where to) and of headers that rules set (where, name, value).
pub(super) fn grant(
    secrets: &[(&str, &str, &str, &str)],
    rules: &[(&str, &str, &str)],
) -> NetworkGrant {
    let mut policy = NetworkPolicy::default();
    for (pattern, name, value) in rules {
        let headers = [((*name).to_owned(), (*value).to_owned())].into();
        let rules = policy.rules.entry(pattern.parse().unwrap()).or_default();
        rules.push(HostRule {
            transform: Transform { headers },
        });
    }
    NetworkGrant {
        sandbox_id: "sandbox1".parse().unwrap(),
        owner: "owner".to_owned(),
        policy,
        secrets: secrets
            .iter()
            .map(|(name, placeholder, value, host)| SecretGrant {
                name: (*name).to_owned(),
                placeholder: (*placeholder).to_owned(),
                value: SecretText::new(*value),
                hosts: vec![host.parse().unwrap()],
            })
            .collect(),
        is_leading: true,
    }
}

pub(super) fn site_authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    // Two of one name would be taken for one another.
    let key = KeyPair::generate().unwrap();
    let name = format!("authority {:?}", &key.public_key_raw()[..8]);
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, key).unwrap()
}

pub(super) fn params(name: &str) -> CertificateParams {
    CertificateParams::new(vec![name.to_owned()]).unwrap()
}

pub(super) fn site_tls(
    authority: &CertifiedIssuer<'static, KeyPair>,
    params: &CertificateParams,
    protocols: &[&str],
) -> TlsAcceptor {
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    config.alpn_protocols = ids(protocols);
    Arc::new(config).into()
}

fn ids(protocols: &[&str]) -> Vec<Vec<u8>> {
    protocols.iter().map(|id| id.as_bytes().to_vec()).collect()
}

pub(super) fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    sandyard_tls::crypto_provider()
}
