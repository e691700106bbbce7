//! The program's end of a connection: a socket from the sandbox, which the sandbox may still hold.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, ipproto, sockopt};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::sandbox::{ByteCounters, Sandbox};

/// Idle time after which the kernel sends keep-alive probes.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(60);

/// A connected TCP socket of a sandbox.
///
/// The sandbox may hold the same socket and make it blocking at any time, so every call passes `MSG_DONTWAIT`.
#[derive(Debug)]
pub(crate) struct ProgramSocket {
    /// `None` only while it is dropped.
    socket: Option<TcpStream>,
    sandbox: Arc<Sandbox>,
    counters: Arc<ByteCounters>,
    /// Whether it is closed without a reset.
    is_orderly: AtomicBool,
}

impl ProgramSocket {
    /// Takes a descriptor, if it is a connected TCP socket.
    pub(crate) fn new(
        descriptor: OwnedFd,
        sandbox: Arc<Sandbox>,
        counters: Arc<ByteCounters>,
    ) -> io::Result<Self> {
        if let Err(error) = check(&descriptor) {
            sandbox.closer.close(descriptor);
            return Err(error);
        }
        // Best effort: the connection works without them.
        let _ = sockopt::set_tcp_nodelay(&descriptor, true);
        let _ = sockopt::set_socket_keepalive(&descriptor, true);
        let _ = sockopt::set_tcp_keepidle(&descriptor, KEEP_ALIVE);
        let _ = sockopt::set_socket_linger(&descriptor, Some(Duration::ZERO));
        let socket = std::net::TcpStream::from(descriptor);
        // Required for registration; the sandbox can undo it later.
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket: Some(TcpStream::from_std(socket)?),
            sandbox,
            counters,
            is_orderly: AtomicBool::new(false),
        })
    }

    fn socket(&self) -> &TcpStream {
        self.socket
            .as_ref()
            .expect("it is taken out when dropped, not before")
    }

    /// Waits until the socket is readable.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.socket().readable().await
    }

    /// Waits for the first byte, then takes a buffer and reads what is available. A count of zero is the end.
    ///
    /// Cancel safe: nothing is awaited after the read.
    pub(crate) async fn receive_into<B: AsMut<[u8]>>(
        &self,
        take: impl Fn() -> B,
    ) -> io::Result<(B, usize)> {
        loop {
            self.socket().readable().await?;
            self.wait_for_bandwidth().await;
            let mut buffer = take();
            let receive = || receive_now(self.socket(), buffer.as_mut());
            match self.socket().try_io(Interest::READABLE, receive) {
                Err(error) if is_temporary(&error) => {}
                received => {
                    let count = received?;
                    self.counters
                        .sent_bytes
                        .fetch_add(count as u64, Ordering::Relaxed);
                    self.sandbox.charge(count);
                    return Ok((buffer, count));
                }
            }
        }
    }

    /// Writes as many bytes as fit; waits until at least one does.
    pub(crate) async fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.wait_for_bandwidth().await;
        let send = || send_now(self.socket(), bytes);
        let count = self.socket().async_io(Interest::WRITABLE, send).await?;
        self.count_received(count);
        Ok(count)
    }

    /// Writes as many bytes as fit now.
    pub(crate) fn send_some(&self, bytes: &[u8]) -> io::Result<usize> {
        match send_now(self.socket(), bytes) {
            Ok(count) => {
                self.count_received(count);
                Ok(count)
            }
            Err(error) if is_temporary(&error) => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Writes a last message, without waiting; returns whether all of it was written.
    pub(crate) fn send_now(&self, bytes: &[u8]) -> bool {
        let sent = send_now(self.socket(), bytes);
        let count = sent.unwrap_or_default();
        self.count_received(count);
        count == bytes.len()
    }

    /// Writes all bytes.
    pub(crate) async fn send_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.send(bytes).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => bytes = &bytes[count..],
            }
        }
        Ok(())
    }

    /// Ends the direction to the program.
    pub(crate) fn finish(&self) {
        let _ = rustix::net::shutdown(self.socket(), rustix::net::Shutdown::Write);
    }

    /// Makes the close an orderly one. Without this call it is a reset, also when this process is killed (the linger time is zero):
    /// a program must not take a part for the whole.
    pub(crate) fn close_in_order(&self) {
        self.is_orderly.store(true, Ordering::Relaxed);
    }

    /// Resolves when the connection breaks, without reading or writing.
    pub(crate) async fn broken(&self) -> io::Error {
        loop {
            if let Err(error) = self.socket().ready(Interest::ERROR).await {
                return error;
            }
            if let Ok(Some(error)) = self.socket().take_error() {
                return error;
            }
            // Reading does not clear this readiness, so poll it slowly.
            tokio::time::sleep(KEEP_ALIVE).await;
        }
    }

    /// Waits while the sandbox exceeds its bandwidth.
    pub(crate) async fn wait_for_bandwidth(&self) {
        while let Some(wait) = self.sandbox.charge(0) {
            tokio::time::sleep(wait).await;
        }
    }

    /// Maximum bytes per copy, so that a low bandwidth is shared in small pieces.
    pub(crate) fn piece_bytes(&self) -> usize {
        self.sandbox.piece_bytes()
    }

    fn count_received(&self, bytes: usize) {
        let received = &self.counters.received_bytes;
        received.fetch_add(bytes as u64, Ordering::Relaxed);
        self.sandbox.charge(bytes);
    }
}

impl Drop for ProgramSocket {
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

fn is_temporary(error: &io::Error) -> bool {
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

/// Accepts only a connected TCP socket: reading from another descriptor might block.
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
        let message = "the agent sent a descriptor that is not a TCP connection";
        Err(io::Error::new(io::ErrorKind::InvalidData, message))
    }
}
