//! Connections of programs, as plain descriptors: most are only passed on, and then the event loop need not know them.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::SocketFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::TcpStream;

use crate::ready;

/// A pause after a failed accept or receive, most often for want of descriptors.
pub(super) const PAUSE: Duration = Duration::from_millis(50);

/// A listener.
#[derive(Debug)]
pub(super) struct Door(AsyncFd<OwnedFd>);

impl Door {
    pub(super) fn new(listener: OwnedFd) -> io::Result<Self> {
        adopt(listener).map(Self)
    }

    /// The next connection, however long that takes.
    pub(super) async fn next(&self) -> OwnedFd {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        loop {
            let accepted = self
                .0
                .async_io(Interest::READABLE, |listener| {
                    Ok(rustix::net::accept_with(listener, flags)?)
                })
                .await;
            match accepted {
                Ok(connection) => return connection,
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}

/// Puts a socket that somebody else made on the event loop, to be read from.
pub(super) fn adopt(socket: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    rustix::io::ioctl_fionbio(&socket, true)?;
    ready::register(socket, Interest::READABLE)
}

/// A connection that is read here.
pub(super) fn stream(connection: OwnedFd) -> io::Result<TcpStream> {
    TcpStream::from_std(connection.into())
}

/// Ends a connection so that its program notices: a reset, no orderly end.
pub(super) fn reset(connection: OwnedFd) {
    // Not with SO_LINGER, which the system call filter ignores.
    let _ = rustix::net::connect_unspec(&connection);
}
