//! Listeners whose connections are plain descriptors: most are handed over without being registered with the event loop.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::SocketFlags;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::TcpStream;

use crate::ready;

/// The pause after a failed accept or receive, which is mostly due to a lack of descriptors.
pub(super) const PAUSE: Duration = Duration::from_millis(50);

/// A listener.
#[derive(Debug)]
pub(super) struct Listener(AsyncFd<OwnedFd>);

impl Listener {
    pub(super) fn new(listener: OwnedFd) -> io::Result<Self> {
        adopt(listener).map(Self)
    }

    /// Waits for the next connection.
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

/// Registers an inherited socket with the event loop, for reading.
pub(super) fn adopt(socket: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    rustix::io::ioctl_fionbio(&socket, true)?;
    ready::register(socket, Interest::READABLE)
}

/// Registers a connection with the event loop.
pub(super) fn stream(connection: OwnedFd) -> io::Result<TcpStream> {
    TcpStream::from_std(connection.into())
}

/// Resets a connection, so that its program notices the error.
pub(super) fn reset(connection: OwnedFd) {
    // Not with SO_LINGER, which the system call filter ignores.
    let _ = rustix::net::connect_unspec(&connection);
}
