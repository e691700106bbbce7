//! Taking connections from both doors.

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

use crate::options::Doors;

/// How long a caller may take to say what it wants.
const HEADERS_TIMEOUT: Duration = Duration::from_secs(30);
/// After an accept that failed for want of descriptors or memory.
const PAUSE: Duration = Duration::from_millis(50);

/// Where a connection came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    /// From the agent, whose caller is checked.
    HandedOver,
    /// From somebody in the sandbox.
    Tcp,
}

/// Serves until the door of connections handed over closes; without one, for ever.
pub(super) async fn serve(doors: Doors, app: Router) -> io::Result<()> {
    for listener in doors.listeners {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let app = app.clone();
        tokio::spawn(async move {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        let _ = stream.set_nodelay(true);
                        tokio::spawn(converse(stream, app.clone(), Door::Tcp));
                    }
                    Err(_) => sleep(PAUSE).await,
                }
            }
        });
    }
    let Some(connections) = doors.connections else {
        return std::future::pending().await;
    };
    let connections = StdUnixDatagram::from(connections);
    connections.set_nonblocking(true)?;
    // It has messages, as the sockets of this type do; waiting for them is all that is asked of it.
    let connections = UnixDatagram::from_std(connections)?;
    while let Some(stream) = next_stream(&connections).await? {
        tokio::spawn(converse(stream, app.clone(), Door::HandedOver));
    }
    Ok(())
}

/// The next connection that is handed over; none when the agent is gone.
async fn next_stream(connections: &UnixDatagram) -> io::Result<Option<UnixStream>> {
    loop {
        connections.readable().await?;
        match connections.try_io(Interest::READABLE, || Ok(receive(connections)?)) {
            Ok(Received::Stream(fd)) => {
                let stream = StdUnixStream::from(fd);
                stream.set_nonblocking(true)?;
                return UnixStream::from_std(stream).map(Some);
            }
            Ok(Received::Nothing) => {}
            Ok(Received::End) => return Ok(None),
            // Tokio's own word for it has no number.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::NFILE | Errno::MFILE | Errno::NOMEM) => sleep(PAUSE).await,
                _ => return Err(error),
            },
        }
    }
}

enum Received {
    Stream(OwnedFd),
    /// A message without a connection.
    Nothing,
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
        None => Received::Nothing,
    })
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    app: Router,
    door: Door,
) {
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(door);
        app.clone()
            .oneshot(request.map(axum::body::Body::new) as Request)
    });
    // A caller that leaves in the middle is nothing to tell anybody.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
