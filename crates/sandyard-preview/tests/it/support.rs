//! A proxy on a port of its own, programs scripted byte by byte, and a client that speaks raw HTTP.

use std::any::Any;
use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use sandyard_preview::{
    DialError, Dialled, Page, PreviewAddress, PreviewBody, PreviewForm, Problem, Scheme, Target,
    forward,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Prefix of the path form in these tests.
pub(crate) const PREFIX: &str = "/p/abc/3000";

pub(crate) fn target(form: PreviewForm) -> Target {
    let address = PreviewAddress {
        sandbox: "abc".to_owned(),
        port: 3000,
        form,
    };
    Target::new(&address, "public.example", Scheme::Http)
}

/// Connects to a program, whatever port the request names.
pub(crate) async fn connect(program: SocketAddr) -> Result<Dialled<TcpStream>, DialError> {
    TcpStream::connect(program)
        .await
        .map(Dialled::from)
        .map_err(|error| match error.kind() {
            ErrorKind::ConnectionRefused => DialError::PortClosed,
            _ => DialError::Unreachable(error.into()),
        })
}

pub(crate) fn problem_page(error: &sandyard_preview::ForwardError) -> Response<PreviewBody> {
    Page::new(Problem::from(error), "abc", 3000).into_response(&http::HeaderMap::new())
}

/// The proxy under test. Its tasks end with it.
pub(crate) struct Proxy {
    pub(crate) addr: SocketAddr,
    /// Cloned into every target; its count tells how many exchanges live.
    guard: Arc<()>,
    accepting: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Proxy {
    pub(crate) async fn start(
        program: SocketAddr,
        target: impl Fn() -> Target + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let guard = Arc::new(());
        // Shared behind one more `Arc`, so that connections do not count and exchanges do.
        let (target, shared) = (Arc::new(target), Arc::new(Arc::clone(&guard)));
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (target, guard) = (Arc::clone(&target), Arc::clone(&shared));
                tokio::spawn(serve(stream, move |request| {
                    let mut target = target();
                    target.guard = Some(Box::new(Arc::clone(&*guard)) as Box<dyn Any + Send>);
                    async move { forward(request, target, move |_| connect(program)).await }
                }));
            }
        });
        Self {
            addr,
            guard,
            accepting,
        }
    }

    pub(crate) async fn client(&self) -> TcpStream {
        TcpStream::connect(self.addr).await.unwrap()
    }

    /// Sends one request and reads the response to the end of the connection.
    pub(crate) async fn send(&self, request: &str) -> String {
        let mut client = self.client().await;
        client.write_all(request.as_bytes()).await.unwrap();
        read_all(&mut client).await
    }

    /// Gives the number of exchanges that live.
    pub(crate) fn live(&self) -> usize {
        Arc::strong_count(&self.guard) - 2
    }

    /// Waits until no exchange lives.
    pub(crate) async fn until_quiet(&self) {
        let quiet = async {
            while self.live() > 0 {
                tokio::task::yield_now().await;
            }
        };
        let deadline = Duration::from_secs(60);
        tokio::time::timeout(deadline, quiet).await.unwrap();
    }
}

/// Serves one connection of a client.
pub(crate) async fn serve<IO, F, Fut>(io: IO, handle: F)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Fn(Request<Incoming>) -> Fut,
    Fut: Future<Output = Result<Response<PreviewBody>, sandyard_preview::ForwardError>>
        + Send
        + 'static,
{
    let service = service_fn(|request| {
        let response = handle(request);
        async move { Ok::<_, Infallible>(response.await.unwrap_or_else(|error| problem_page(&error))) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(io), service)
        .with_upgrades();
    // How it ends is seen by the client.
    let _ = connection.await;
}

/// Starts a program that treats its one connection as told.
pub(crate) async fn program<F, Fut, T>(script: F) -> (SocketAddr, JoinHandle<T>)
where
    F: FnOnce(TcpStream) -> Fut + Send + 'static,
    Fut: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        script(stream).await
    });
    (addr, task)
}

/// Starts a program that reads a head, answers with these bytes and ends. Gives the head.
pub(crate) async fn answering(answer: impl Into<Vec<u8>>) -> (SocketAddr, JoinHandle<String>) {
    let answer = answer.into();
    program(|mut stream| async move {
        let head = read_head(&mut stream).await;
        // The proxy may have had enough before the end.
        let _ = stream.write_all(&answer).await;
        let _ = stream.shutdown().await;
        // Waits for the proxy to let go, so that nothing it was sent is lost to a reset.
        let _ = stream.read_to_end(&mut Vec::new()).await;
        head
    })
    .await
}

/// Reads up to the end of a head, and not a byte more.
pub(crate) async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    read_until(stream, "\r\n\r\n").await
}

/// Reads up to and with some text.
pub(crate) async fn read_until(stream: &mut (impl AsyncRead + Unpin), end: &str) -> String {
    let mut seen = Vec::new();
    while !seen.ends_with(end.as_bytes()) {
        match stream.read_u8().await {
            Ok(byte) => seen.push(byte),
            Err(error) => panic!("{error} after {:?}", String::from_utf8_lossy(&seen)),
        }
    }
    String::from_utf8(seen).unwrap()
}

pub(crate) async fn read_all(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    // A reset is an end as well.
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8(bytes).unwrap()
}
