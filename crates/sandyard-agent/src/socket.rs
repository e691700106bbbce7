//! One accepted connection, TCP or Unix. HTTP and the code that waits for the peer's end share it.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// A stream socket of either family.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Calls the same method of either stream.
macro_rules! each {
    ($self:expr, $stream:ident => $call:expr) => {
        match $self {
            Socket::Tcp($stream) => $call,
            Socket::Unix($stream) => $call,
        }
    };
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        each!(self, stream => stream.as_fd())
    }
}

/// A handle on a connection; clones share the socket.
#[derive(Debug, Clone)]
pub(crate) struct Peer(Arc<Socket>);

impl Peer {
    pub(crate) fn new(socket: Socket) -> Self {
        Self(Arc::new(socket))
    }

    /// Resolves when the peer has closed its sending side.
    ///
    /// A stream that may be silent for minutes watches this, because no write could fail. A peer with unread bytes counts as
    /// alive.
    pub(crate) async fn closed(&self) {
        loop {
            let readable = each!(&*self.0, stream => stream.ready(Interest::READABLE).await);
            if readable.is_err() {
                return;
            }
            let mut probe = [0u8; 1];
            let peeked = self.try_io(Interest::READABLE, || {
                let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
                Ok(rustix::net::recv(&*self.0, &mut probe[..], flags)?.0)
            });
            match peeked {
                Ok(0) => return,
                Ok(_) => std::future::pending().await,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }

    /// Sends some of the bytes and, with the first of them, a descriptor, which only a Unix socket can carry.
    pub(crate) async fn send_with(
        &self,
        bytes: &[u8],
        descriptor: Option<BorrowedFd<'_>>,
    ) -> io::Result<usize> {
        let send = || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            if descriptor.is_some_and(|_| {
                !ancillary.push(SendAncillaryMessage::ScmRights(descriptor.as_slice()))
            }) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let parts = [IoSlice::new(bytes)];
            Ok(rustix::net::sendmsg(
                &*self.0,
                &parts,
                &mut ancillary,
                flags,
            )?)
        };
        each!(&*self.0, stream => stream.async_io(Interest::WRITABLE, send).await)
    }

    /// Ends the connection in both directions, for all handles.
    pub(crate) fn close(&self) {
        // Fails only when the other side has ended it already.
        let _ = rustix::net::shutdown(&*self.0, rustix::net::Shutdown::Both);
    }

    fn try_io<R>(&self, interest: Interest, work: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        each!(&*self.0, stream => stream.try_io(interest, work))
    }

    fn poll_write_with(
        &self,
        cx: &mut Context<'_>,
        mut work: impl FnMut(&Socket) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(each!(&*self.0, stream => stream.poll_write_ready(cx)))?;
            match work(&self.0) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
        }
    }
}

impl AsyncRead for Peer {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(each!(&*self.0, stream => stream.poll_read_ready(cx)))?;
            // SAFETY: `recv` only writes to the slice and never makes initialised bytes uninitialised.
            let unfilled = unsafe { buf.unfilled_mut() };
            let received = self.try_io(Interest::READABLE, || {
                Ok(rustix::net::recv(&*self.0, unfilled, RecvFlags::DONTWAIT)?.1)
            });
            match received {
                Ok(count) => {
                    // SAFETY: the kernel has just written `count` bytes there.
                    unsafe { buf.assume_init(count) };
                    buf.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for Peer {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(
            cx,
            |socket| each!(socket, stream => stream.try_write(bytes)),
        )
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(
            cx,
            |socket| each!(socket, stream => stream.try_write_vectored(slices)),
        )
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match rustix::net::shutdown(&*self.0, rustix::net::Shutdown::Write) {
            Ok(()) | Err(rustix::io::Errno::NOTCONN) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }
}
