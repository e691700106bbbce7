//! The answering half on a port of its own, as the server mounts it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, BodyStream, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use sandyard_core::network::{NetworkGrant, NetworkPolicy};
use sandyard_provider::prelude::*;
use sandyard_providers::node;
use sandyard_providers::{NodeConfig, node::Token};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;
use tokio_util::io::StreamReader;

/// A node; gone when dropped.
pub(crate) struct Server {
    address: SocketAddr,
    scheme: &'static str,
    accepting: AbortHandle,
}

impl Server {
    pub(crate) async fn start(provider: Arc<dyn Provider>, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let scheme = if tls.is_some() { "https" } else { "http" };
        let accept = async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (provider, tls) = (provider.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(provider, stream).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(provider, stream).await;
                            }
                        }
                    }
                });
            }
        };
        Self {
            address,
            scheme,
            accepting: tokio::spawn(accept).abort_handle(),
        }
    }

    /// How to reach it with that token.
    pub(crate) fn config(&self, token: &'static str) -> NodeConfig {
        let url = format!("{}://localhost:{}", self.scheme, self.address.port());
        NodeConfig::new(url, Token::new(move || token.to_owned()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(
    provider: Arc<dyn Provider>,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) {
    let service = service_fn(move |request| {
        let provider = provider.clone();
        async move {
            let (status, body) = answer(provider, request).await;
            let mut response = Response::new(Full::new(body));
            *response.status_mut() = status;
            if status == StatusCode::SWITCHING_PROTOCOLS {
                let headers = response.headers_mut();
                headers.insert("connection", "upgrade".parse().expect("a value"));
                headers.insert("upgrade", node::UPGRADE.parse().expect("a value"));
            }
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    let _ = connection.with_upgrades().await;
}

async fn answer(
    provider: Arc<dyn Provider>,
    mut request: Request<Incoming>,
) -> (StatusCode, Bytes) {
    let header = request.headers().get("authorization");
    if header.and_then(|value| value.to_str().ok()) != Some("Node right") {
        return (StatusCode::UNAUTHORIZED, Bytes::new());
    }
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let below = |prefix: &str| path.strip_prefix(prefix)?.strip_prefix('/');
    if let Some(id) = below(node::AGENT_PATH) {
        let stream = match node::tunnel(&*provider, id).await {
            Ok(stream) => stream,
            Err(error) => return node::refusal(error),
        };
        tokio::spawn(async move {
            let upgraded = hyper::upgrade::on(&mut request).await.expect("an upgrade");
            let _ = node::splice(TokioIo::new(upgraded), stream).await;
        });
        return (StatusCode::SWITCHING_PROTOCOLS, Bytes::new());
    }
    match below(node::PROVIDER_PATH) {
        Some("import_template") => {
            let name = query.strip_prefix("name=").expect("a name");
            let name = name.replace("%2F", "/");
            let frames = BodyStream::new(request.into_body())
                .map_ok(|frame| frame.into_data().unwrap_or_default())
                .map_err(std::io::Error::other);
            let archive = Box::pin(StreamReader::new(frames));
            node::serve_import(&*provider, &name, archive).await
        }
        Some(verb) => {
            let body = Limited::new(request.into_body(), node::MAX_REQUEST);
            match body.collect().await {
                Ok(body) if verb == "set_network" => {
                    set_network(&*provider, &body.to_bytes()).await
                }
                Ok(body) => node::serve_verb(&*provider, verb, body.to_bytes()).await,
                Err(_) => (StatusCode::PAYLOAD_TOO_LARGE, Bytes::new()),
            }
        }
        None => (StatusCode::NOT_FOUND, Bytes::new()),
    }
}

/// The server finds the grant in the store; here there is none, and every grant is the same.
async fn set_network(provider: &dyn Provider, body: &[u8]) -> (StatusCode, Bytes) {
    let call: node::SetNetworkRequest<'_> = serde_json::from_slice(body).expect("a request");
    let grant = NetworkGrant {
        sandbox_id: call.sandbox_id,
        owner: "somebody".to_owned(),
        policy: NetworkPolicy::default(),
        secrets: Vec::new(),
        is_leading: true,
    };
    match provider.set_network(&call.id, &grant).await {
        Ok(limitations) => (
            StatusCode::OK,
            serde_json::to_vec(&limitations).expect("texts").into(),
        ),
        Err(error) => node::refusal(error),
    }
}
