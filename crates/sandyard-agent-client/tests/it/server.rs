//! A server that sends whatever bytes a test wants.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sandyard_agent_client::{AgentClient, ClientError, Endpoint, Limits};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

/// A listening server; gone with its socket when dropped.
pub(crate) struct Server {
    directory: TempDir,
    connections: Arc<AtomicUsize>,
}

impl Server {
    /// Treats every connection as `behave` says.
    pub(crate) fn new<F, W>(behave: F) -> Self
    where
        F: Fn(UnixStream) -> W + Send + 'static,
        W: Future<Output = ()> + Send + 'static,
    {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let listener = UnixListener::bind(directory.path().join("s")).expect("a socket");
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(behave(stream));
            }
        });
        Self {
            directory,
            connections,
        }
    }

    /// Reads each request's head, then sends these bytes and closes.
    pub(crate) fn replying(reply: impl AsRef<[u8]>) -> Self {
        let reply: Arc<[u8]> = reply.as_ref().into();
        Self::new(move |mut stream| {
            let reply = Arc::clone(&reply);
            async move {
                read_head(&mut stream).await;
                let _ = stream.write_all(&reply).await;
                // A program that another test is about to start has the connection, too, for a moment: closing it is not enough.
                let _ = stream.shutdown().await;
            }
        })
    }

    /// Sends `first` and then `again` for as long as anybody reads.
    pub(crate) fn endless(first: &'static [u8], second: &'static [u8]) -> Self {
        Self::new(move |mut stream| async move {
            read_head(&mut stream).await;
            let second = second.repeat(4096 / second.len() + 1);
            let mut result = stream.write_all(first).await;
            while result.is_ok() {
                result = stream.write_all(&second).await;
            }
        })
    }

    /// Sends these bytes and then nothing more, keeping the connection open.
    pub(crate) fn stalling_after(reply: impl AsRef<[u8]>) -> Self {
        let reply: Arc<[u8]> = reply.as_ref().into();
        Self::new(move |mut stream| {
            let reply = Arc::clone(&reply);
            async move {
                read_head(&mut stream).await;
                let _ = stream.write_all(&reply).await;
                std::future::pending::<()>().await;
            }
        })
    }

    pub(crate) fn client(&self) -> AgentClient {
        AgentClient::new(self.endpoint())
    }

    pub(crate) fn client_with(&self, limits: Limits) -> AgentClient {
        AgentClient::with_limits(self.endpoint(), limits)
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::Unix(self.directory.path().join("s"))
    }

    /// Returns how many connections there have been.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// Reads a request up to the end of its head and returns it; empty when the client has closed.
pub(crate) async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).expect("a request's head is ASCII")
}

/// Reads a whole request with a body of known length.
pub(crate) async fn read_request(stream: &mut UnixStream) -> (String, Vec<u8>) {
    let head = read_head(stream).await;
    let length = head
        .to_ascii_lowercase()
        .split("content-length: ")
        .nth(1)
        .and_then(|rest| rest.split("\r\n").next()?.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.expect("a whole body");
    (head, body)
}

/// Makes a reply with a body and its length.
pub(crate) fn reply(status: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut reply = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    reply.extend_from_slice(body);
    reply
}

/// Makes the reply of a stream, as long as the connection, of these frames.
pub(crate) fn stream_of(frames: &[&[u8]]) -> Vec<u8> {
    let mut reply = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_vec();
    for frame in frames {
        reply.extend_from_slice(frame);
    }
    reply
}

/// Returns the kind of an error as a word, so that tests can compare it.
pub(crate) fn kind<T: std::fmt::Debug>(result: Result<T, ClientError>) -> &'static str {
    match result.expect_err("the call must fail") {
        ClientError::Connect { .. } => "connect",
        ClientError::Timeout { .. } => "timeout",
        ClientError::TooLarge { .. } => "too large",
        ClientError::Protocol { .. } => "protocol",
        ClientError::Remote { .. } => "remote",
        ClientError::Closed { .. } => "closed",
        ClientError::Io { .. } => "io",
        _ => "other",
    }
}
