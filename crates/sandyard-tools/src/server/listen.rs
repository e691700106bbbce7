//! Accepts connections over TCP and from the agent.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixDatagram as StdUnixDatagram, UnixStream as StdUnixStream};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::io::{AsyncRead, AsyncWrite, Interest};
use tokio::net::{TcpListener, UnixDatagram, UnixStream};
use tokio::time::sleep;
use tower::ServiceExt;

use crate::options::Endpoints;

/// Time for a client to send the request headers.
const HEADERS_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause after an accept that failed because descriptors or memory ran out.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionSource {
    /// From the agent; the server has authenticated the client.
    Agent,
    /// From a program in the sandbox, or through a cloud's proxy.
    Tcp,
}

/// Serves until the agent closes its socket; forever if there is none.
pub(super) async fn serve(endpoints: Endpoints, app: Router) -> io::Result<()> {
    for listener in endpoints.listeners {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let app = app.clone();
        tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        let _ = stream.set_nodelay(true);
                        tokio::spawn(serve_connection(stream, app.clone(), ConnectionSource::Tcp));
                    }
                    Err(_) => sleep(RETRY_PAUSE).await,
                }
            }
        });
    }
    let Some(connections) = endpoints.connections else {
        return std::future::pending().await;
    };
    let connections = StdUnixDatagram::from(connections);
    connections.set_nonblocking(true)?;
    // It is a seqpacket socket. Tokio has no type for it, and only has to wait for messages.
    let connections = UnixDatagram::from_std(connections)?;
    while let Some(stream) = next_stream(&connections).await? {
        tokio::spawn(serve_connection(
            stream,
            app.clone(),
            ConnectionSource::Agent,
        ));
    }
    Ok(())
}

/// The next connection from the agent; none when the agent is gone.
async fn next_stream(connections: &UnixDatagram) -> io::Result<Option<UnixStream>> {
    loop {
        connections.readable().await?;
        match connections.try_io(Interest::READABLE, || Ok(receive(connections)?)) {
            Ok(Received::Stream(fd)) => {
                let stream = StdUnixStream::from(fd);
                stream.set_nonblocking(true)?;
                return UnixStream::from_std(stream).map(Some);
            }
            Ok(Received::Empty) => {}
            Ok(Received::End) => return Ok(None),
            // Tokio's own `WouldBlock` has no error number.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::NFILE | Errno::MFILE | Errno::NOMEM) => sleep(RETRY_PAUSE).await,
                _ => return Err(error),
            },
        }
    }
}

enum Received {
    Stream(OwnedFd),
    /// A message without a connection.
    Empty,
    End,
}

fn receive(socket: impl AsFd) -> Result<Received, Errno> {
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0_u8; 1];
    let got = recvmsg(
        socket,
        &mut [io::IoSliceMut::new(&mut byte)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let fd = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    Ok(match fd {
        Some(fd) => Received::Stream(fd),
        None if got.bytes == 0 => Received::End,
        None => Received::Empty,
    })
}

async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    app: Router,
    source: ConnectionSource,
) {
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(source);
        app.clone()
            .oneshot(request.map(axum::body::Body::new) as Request)
    });
    // A client that disconnects is not an error.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
