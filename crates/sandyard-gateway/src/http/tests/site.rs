//! The other side: a server that notes what it gets.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, Request, Response, Uri};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

pub(super) type SiteBody = BoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

type Handler =
    Arc<dyn Fn(Request<Incoming>) -> BoxFuture<'static, Response<SiteBody>> + Send + Sync>;

/// The head of a request, as the site got it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
}

impl Seen {
    pub(super) fn header(&self, name: &str) -> &str {
        let value = self
            .headers
            .get(name)
            .unwrap_or_else(|| panic!("no `{name}` in {self:?}"));
        value.to_str().unwrap()
    }
}

/// A server on loopback, gone when dropped.
pub(super) struct Site {
    pub(super) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    _task: AbortOnDropHandle<()>,
}

impl Site {
    /// One that answers every request by this, over TLS if there is an acceptor.
    pub(super) async fn start<F, A>(tls: Option<TlsAcceptor>, handler: F) -> Self
    where
        F: Fn(Request<Incoming>) -> A + Send + Sync + 'static,
        A: Future<Output = Response<SiteBody>> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |request| Box::pin(handler(request)));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = seen.clone();
        let served = move |stream: TcpStream| {
            let (tls, handler, seen) = (tls.clone(), handler.clone(), noted.clone());
            async move {
                match tls {
                    // A program that does not like the certificate is what some tests are about.
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            let is_two = stream.get_ref().1.alpn_protocol() == Some(b"h2");
                            serve(stream, is_two, handler, seen).await;
                        }
                    }
                    None => serve(stream, false, handler, seen).await,
                }
            }
        };
        let (address, task) = listen(served).await;
        Self {
            address,
            seen,
            _task: task,
        }
    }

    /// One that speaks HTTP/2 without TLS.
    pub(super) async fn plain_two() -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = seen.clone();
        let (address, task) = listen(move |stream| {
            let handler: Handler = Arc::new(|request| Box::pin(echo(request)));
            serve(stream, true, handler, noted.clone())
        })
        .await;
        Self {
            address,
            seen,
            _task: task,
        }
    }

    /// One that treats its connections itself.
    pub(super) async fn raw<F, A>(serve: F) -> Self
    where
        F: Fn(TcpStream) -> A + Send + Sync + 'static,
        A: Future<Output = ()> + Send + 'static,
    {
        let (address, task) = listen(serve).await;
        Self {
            address,
            seen: Arc::default(),
            _task: task,
        }
    }

    /// What it got.
    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The last of it.
    pub(super) fn last(&self) -> Seen {
        self.seen().pop().expect("the site got a request")
    }
}

async fn listen<F, A>(serve: F) -> (SocketAddr, AbortOnDropHandle<()>)
where
    F: Fn(TcpStream) -> A + Send + Sync + 'static,
    A: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let mut open = tokio::task::JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            open.spawn(serve(stream));
        }
    });
    (address, AbortOnDropHandle::new(task))
}

async fn serve<S>(stream: S, is_two: bool, handler: Handler, seen: Arc<Mutex<Vec<Seen>>>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let head = Seen {
            method: request.method().clone(),
            uri: request.uri().clone(),
            headers: request.headers().clone(),
        };
        seen.lock().unwrap().push(head);
        let answered = handler(request);
        async move { Ok::<_, std::convert::Infallible>(answered.await) }
    });
    let stream = TokioIo::new(stream);
    // How the gateway ends it is for the test to say.
    let _ = match is_two {
        true => {
            let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            // The bounds are to be the gateway's.
            builder.max_header_list_size(1024 * 1024);
            builder.serve_connection(stream, service).await
        }
        false => {
            let builder = hyper::server::conn::http1::Builder::new();
            builder
                .serve_connection(stream, service)
                .with_upgrades()
                .await
        }
    };
}

/// Answers with what was sent: headers as headers with `echo-` before them and as text, then the body.
pub(super) async fn echo(request: Request<Incoming>) -> Response<SiteBody> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let mut response = Response::new(());
    let mut text = format!("{} {}\n", head.method, head.uri);
    for (name, value) in &head.headers {
        text.push_str(&format!(
            "{name}: {}\n",
            String::from_utf8_lossy(value.as_bytes())
        ));
        let name = format!("echo-{name}");
        let name = http::HeaderName::from_bytes(name.as_bytes()).unwrap();
        response.headers_mut().append(name, value.clone());
    }
    let mut text = text.into_bytes();
    text.extend_from_slice(&body);
    response.map(|()| full(text))
}

/// A body that is there at once.
pub(super) fn full(content: impl Into<Bytes>) -> SiteBody {
    Full::new(content.into())
        .map_err(|never| match never {})
        .boxed()
}
