//! The program's end of a connection: a socket that the sandbox gave us and may still hold.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, ipproto, sockopt};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::sandbox::{Counted, Sandbox};

/// Silence after which the kernel asks whether the other end is still there.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// A connected TCP socket of a sandbox.
///
/// The sandbox may hold the same socket and make it blocking at any time, so every call says itself that it must not wait.
#[derive(Debug)]
pub(crate) struct Inside {
    socket: TcpStream,
    sandbox: Arc<Sandbox>,
    counted: Arc<Counted>,
}

impl Inside {
    /// Takes a descriptor, if it is what it should be.
    pub(crate) fn new(
        descriptor: OwnedFd,
        sandbox: Arc<Sandbox>,
        counted: Arc<Counted>,
    ) -> io::Result<Self> {
        check(&descriptor)?;
        // Best effort: both only spare a little.
        let _ = sockopt::set_tcp_nodelay(&descriptor, true);
        let _ = sockopt::set_socket_keepalive(&descriptor, true);
        let _ = sockopt::set_tcp_keepidle(&descriptor, KEEP_ALIVE);
        let socket = std::net::TcpStream::from(descriptor);
        // Asked for on registering; the sandbox can undo it.
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket: TcpStream::from_std(socket)?,
            sandbox,
            counted,
        })
    }

    /// Reads what is there, waiting for the first byte. None at the end.
    pub(crate) async fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let receive = || receive_now(&self.socket, &mut *buffer);
        let count = self.socket.async_io(Interest::READABLE, receive).await?;
        self.count_sent(count).await;
        Ok(count)
    }

    /// Waits until there is something to read.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await
    }

    /// Reads into a buffer that is only taken once there is something to read.
    pub(crate) async fn receive_into<B: AsMut<[u8]>>(
        &self,
        take: impl Fn() -> B,
    ) -> io::Result<(B, usize)> {
        loop {
            self.socket.readable().await?;
            let mut buffer = take();
            let receive = || receive_now(&self.socket, buffer.as_mut());
            match self.socket.try_io(Interest::READABLE, receive) {
                Err(error) if is_not_yet(&error) => {}
                received => {
                    let count = received?;
                    self.count_sent(count).await;
                    return Ok((buffer, count));
                }
            }
        }
    }

    /// Writes as much as there is room for, waiting for the first byte's.
    pub(crate) async fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        let send = || send_now(&self.socket, bytes);
        let count = self.socket.async_io(Interest::WRITABLE, send).await?;
        self.count_received(count).await;
        Ok(count)
    }

    /// Writes as much as there is room for now.
    pub(crate) async fn send_some(&self, bytes: &[u8]) -> io::Result<usize> {
        match send_now(&self.socket, bytes) {
            Ok(count) => {
                self.count_received(count).await;
                Ok(count)
            }
            Err(error) if is_not_yet(&error) => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Writes all of it.
    pub(crate) async fn send_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.send(bytes).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => bytes = &bytes[count..],
            }
        }
        Ok(())
    }

    /// Tells the program that nothing more comes.
    pub(crate) fn finish(&self) {
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write);
    }

    /// Makes the close, whenever it comes, a reset: the program notices at once.
    pub(crate) fn reset_on_close(&self) {
        let _ = sockopt::set_socket_linger(&self.socket, Some(Duration::ZERO));
    }

    async fn count_sent(&self, bytes: usize) {
        self.counted.sent.fetch_add(bytes as u64, Ordering::Relaxed);
        self.wait_for_turn(bytes).await;
    }

    async fn count_received(&self, bytes: usize) {
        let received = &self.counted.received;
        received.fetch_add(bytes as u64, Ordering::Relaxed);
        self.wait_for_turn(bytes).await;
    }

    async fn wait_for_turn(&self, bytes: usize) {
        if let Some(wait) = self.sandbox.charge(bytes) {
            tokio::time::sleep(wait).await;
        }
    }
}

fn is_not_yet(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

fn receive_now(socket: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    let (count, _) = rustix::net::recv(socket, buffer, RecvFlags::DONTWAIT)?;
    Ok(count)
}

fn send_now(socket: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    Ok(rustix::net::send(socket, bytes, flags)?)
}

/// Only a connected TCP socket will do: reading from anything else might wait, or be somebody's trick.
fn check(descriptor: &OwnedFd) -> io::Result<()> {
    let is_tcp = sockopt::socket_type(descriptor)? == SocketType::STREAM
        && matches!(
            sockopt::socket_domain(descriptor)?,
            AddressFamily::INET | AddressFamily::INET6
        )
        && sockopt::socket_protocol(descriptor)? == Some(ipproto::TCP);
    let is_connected = || -> io::Result<bool> {
        let peer = rustix::net::getpeername(descriptor)?;
        Ok(peer.is_some_and(|peer| SocketAddr::try_from(peer).is_ok()))
    };
    if is_tcp && is_connected()? {
        Ok(())
    } else {
        let message = "the agent sent a descriptor that is no TCP connection";
        Err(io::Error::new(io::ErrorKind::InvalidData, message))
    }
}
