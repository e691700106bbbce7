//! The program's end of a connection: a socket that the sandbox gave us and may still hold.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
    /// None only while it is dropped.
    socket: Option<TcpStream>,
    sandbox: Arc<Sandbox>,
    counted: Arc<Counted>,
    /// Whether it ends without a reset.
    is_orderly: AtomicBool,
}

impl Inside {
    /// Takes a descriptor, if it is what it should be.
    pub(crate) fn new(
        descriptor: OwnedFd,
        sandbox: Arc<Sandbox>,
        counted: Arc<Counted>,
    ) -> io::Result<Self> {
        if let Err(error) = check(&descriptor) {
            sandbox.closer.close(descriptor);
            return Err(error);
        }
        // Best effort: both only spare a little.
        let _ = sockopt::set_tcp_nodelay(&descriptor, true);
        let _ = sockopt::set_socket_keepalive(&descriptor, true);
        let _ = sockopt::set_tcp_keepidle(&descriptor, KEEP_ALIVE);
        let _ = sockopt::set_socket_linger(&descriptor, Some(Duration::ZERO));
        let socket = std::net::TcpStream::from(descriptor);
        // Asked for on registering; the sandbox can undo it.
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket: Some(TcpStream::from_std(socket)?),
            sandbox,
            counted,
            is_orderly: AtomicBool::new(false),
        })
    }

    fn socket(&self) -> &TcpStream {
        self.socket
            .as_ref()
            .expect("it is taken out when dropped, not before")
    }

    /// Waits until there is something to read.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.socket().readable().await
    }

    /// Reads what is there, waiting for the first byte, into a buffer that is only taken then. None at the end.
    ///
    /// Nothing is waited for after the read: who gives up on this loses nothing.
    pub(crate) async fn receive_into<B: AsMut<[u8]>>(
        &self,
        take: impl Fn() -> B,
    ) -> io::Result<(B, usize)> {
        loop {
            self.socket().readable().await?;
            self.wait_for_turn().await;
            let mut buffer = take();
            let receive = || receive_now(self.socket(), buffer.as_mut());
            match self.socket().try_io(Interest::READABLE, receive) {
                Err(error) if is_not_yet(&error) => {}
                received => {
                    let count = received?;
                    self.counted.sent.fetch_add(count as u64, Ordering::Relaxed);
                    self.sandbox.charge(count);
                    return Ok((buffer, count));
                }
            }
        }
    }

    /// Writes as much as there is room for, waiting for the first byte's.
    pub(crate) async fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.wait_for_turn().await;
        let send = || send_now(self.socket(), bytes);
        let count = self.socket().async_io(Interest::WRITABLE, send).await?;
        self.count_received(count);
        Ok(count)
    }

    /// Writes as much as there is room for now.
    pub(crate) fn send_some(&self, bytes: &[u8]) -> io::Result<usize> {
        match send_now(self.socket(), bytes) {
            Ok(count) => {
                self.count_received(count);
                Ok(count)
            }
            Err(error) if is_not_yet(&error) => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Writes a few last words, if there is room for all of them.
    pub(crate) fn send_now(&self, bytes: &[u8]) -> bool {
        let sent = send_now(self.socket(), bytes);
        let count = sent.unwrap_or_default();
        self.count_received(count);
        count == bytes.len()
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
        let _ = rustix::net::shutdown(self.socket(), rustix::net::Shutdown::Write);
    }

    /// Lets the close be an orderly one. Until this is called it is a reset, also when this process is killed (it lingers for no time):
    /// a program must not take a part for the whole.
    pub(crate) fn close_in_order(&self) {
        self.is_orderly.store(true, Ordering::Relaxed);
    }

    /// Resolves when the connection has broken, though nothing is read or written.
    pub(crate) async fn broken(&self) -> io::Error {
        loop {
            if let Err(error) = self.socket().ready(Interest::ERROR).await {
                return error;
            }
            if let Ok(Some(error)) = self.socket().take_error() {
                return error;
            }
            // Readiness of this kind is not cleared by reading; look again in a while.
            tokio::time::sleep(KEEP_ALIVE).await;
        }
    }

    /// Waits until the sandbox has made good for what it used too fast.
    pub(crate) async fn wait_for_turn(&self) {
        while let Some(wait) = self.sandbox.charge(0) {
            tokio::time::sleep(wait).await;
        }
    }

    /// Bytes to move in one go at most, so that a low rate is shared in small pieces.
    pub(crate) fn piece_bytes(&self) -> usize {
        self.sandbox.piece_bytes()
    }

    fn count_received(&self, bytes: usize) {
        let received = &self.counted.received;
        received.fetch_add(bytes as u64, Ordering::Relaxed);
        self.sandbox.charge(bytes);
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let Some(Ok(socket)) = self.socket.take().map(TcpStream::into_std) else {
            return;
        };
        if self.is_orderly.load(Ordering::Relaxed) {
            self.sandbox.closer.close(socket.into());
        } else {
            self.sandbox.closer.abort(socket.into());
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
