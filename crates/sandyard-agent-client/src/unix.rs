//! Connections to an agent's Unix socket, on which the other side may send descriptors.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{UnixSocket, UnixStream};

use crate::closer::Closer;

/// Bytes of a Unix socket's address that can hold its path, less the final NUL (unix(7)).
const MAX_SUN_PATH: usize = 107;

/// Bytes read in one go where descriptors have to be looked for; the buffer has to be cleared first.
const MAX_PIECE: usize = 64 * 1024;

/// A connection to an agent. Descriptors that the agent sends are closed on a thread that may block, also those that are
/// still unread when the connection itself is closed.
#[derive(Debug)]
pub struct AgentStream {
    /// `None` only while it is dropped.
    stream: Option<UnixStream>,
    /// Whether the kernel refuses descriptors on this socket.
    is_refusing: bool,
    closer: Arc<Closer>,
}

/// What an agent may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepts {
    Bytes,
    Descriptors,
}

impl AgentStream {
    /// Takes a connection on which descriptors may come; `closer` closes it, and what is unread in it.
    pub fn new(stream: UnixStream, closer: Arc<Closer>) -> Self {
        Self {
            stream: Some(stream),
            is_refusing: false,
            closer,
        }
    }

    /// Connects to a path of any length. For bytes alone, descriptors are refused if the kernel can do that.
    pub(crate) async fn connect(
        path: &Path,
        accepts: Accepts,
        closer: Arc<Closer>,
    ) -> io::Result<Self> {
        if path.as_os_str().as_bytes().len() <= MAX_SUN_PATH {
            return Self::connect_with_retry(path, accepts, closer).await;
        }
        // A longer path does not fit an address, but a descriptor of its directory makes it short.
        let parent = path.parent().unwrap_or(Path::new("/"));
        let name = path
            .file_name()
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let directory = rustix::fs::open(
            parent,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let short = PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name);
        Self::connect_with_retry(&short, accepts, closer).await
    }

    /// Connects, waiting while the listener's queue is full: a non-blocking connect to a Unix socket then fails at once with
    /// `EAGAIN` instead of waiting (connect(2)), and nothing can be polled for.
    async fn connect_with_retry(
        path: &Path,
        accepts: Accepts,
        closer: Arc<Closer>,
    ) -> io::Result<Self> {
        let mut pause = Duration::from_millis(1);
        loop {
            let socket = UnixSocket::new_stream()?;
            // Linux before 6.16 cannot refuse them.
            let is_refusing =
                accepts == Accepts::Bytes && sandyard_confine::descriptors::refuse(&socket).is_ok();
            match socket.connect(path).await {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_millis(50));
                }
                connected => {
                    let mut stream = Self::new(connected?, closer);
                    stream.is_refusing = is_refusing;
                    return Ok(stream);
                }
            }
        }
    }

    /// Reads what is there now, and takes the descriptors that came with it.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is there. The caller waits for readiness.
    pub fn try_receive(&self, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
        self.try_io(Interest::READABLE, || receive(self, buffer))
    }

    /// The closer of this connection.
    pub fn closer(&self) -> &Arc<Closer> {
        &self.closer
    }

    fn poll_receive(&self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_read_ready(cx))?;
            let len = buf.remaining().min(MAX_PIECE);
            let (count, descriptors) = match self.try_receive(buf.initialize_unfilled_to(len)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                received => received?,
            };
            if !descriptors.is_empty() {
                for descriptor in descriptors {
                    self.closer.abort(descriptor);
                }
                let message = "the agent sent an unexpected descriptor";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, message)));
            }
            buf.advance(count);
            return Poll::Ready(Ok(()));
        }
    }
}

/// Receives bytes and descriptors. The control buffer holds as many as one message can have: the kernel would close the others
/// here, on this thread.
fn receive(stream: &UnixStream, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(253))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let mut buffers = [IoSliceMut::new(buffer)];
    let message = rustix::net::recvmsg(stream, &mut buffers, &mut control, flags)?;
    let mut descriptors = Vec::new();
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = part {
            descriptors.extend(rights);
        }
    }
    Ok((message.bytes, descriptors))
}

impl Drop for AgentStream {
    fn drop(&mut self) {
        if !self.is_refusing
            && let Some(Ok(stream)) = self.stream.take().map(UnixStream::into_std)
        {
            self.closer.close(stream.into());
        }
    }
}

impl Deref for AgentStream {
    type Target = UnixStream;

    fn deref(&self) -> &UnixStream {
        self.stream
            .as_ref()
            .expect("it is taken out when dropped, not before")
    }
}

impl DerefMut for AgentStream {
    fn deref_mut(&mut self) -> &mut UnixStream {
        self.stream
            .as_mut()
            .expect("it is taken out when dropped, not before")
    }
}

impl AsyncRead for AgentStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_refusing {
            Pin::new(&mut **self).poll_read(cx, buf)
        } else {
            self.poll_receive(cx, buf)
        }
    }
}

impl AsyncWrite for AgentStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut **self).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut **self).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut **self).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut **self).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{IoSlice, Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::sync::mpsc;

    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sockopt};
    use tokio::io::AsyncReadExt;

    use super::*;

    /// A socket whose close takes ten minutes, with the end that never reads.
    fn lingering() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (reader, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        while socket.write(&[0; 65536]).is_ok() {}
        sockopt::set_socket_linger(&socket, Some(Duration::from_secs(600))).unwrap();
        (socket, reader)
    }

    fn send(stream: impl AsFd, descriptor: &TcpStream) -> rustix::io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = [descriptor.as_fd()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
        let flags = SendFlags::NOSIGNAL;
        rustix::net::sendmsg(stream, &[IoSlice::new(b"x")], &mut control, flags)
    }

    /// Runs something on a runtime with one thread; fails when that thread is held up.
    fn in_time(test: impl Future<Output = ()> + Send + 'static) {
        let (done, ended) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(test);
            runtime.shutdown_background();
            done.send(()).unwrap();
        });
        let timeout = Duration::from_secs(120);
        ended.recv_timeout(timeout).expect("the runtime's thread");
    }

    fn pair() -> (AgentStream, std::os::unix::net::UnixStream) {
        let (client_end, agent_end) = UnixStream::pair().unwrap();
        let stream = AgentStream::new(client_end, Arc::new(Closer::new(1)));
        (stream, agent_end.into_std().unwrap())
    }

    #[test]
    fn a_lingering_descriptor_ends_the_connection_and_blocks_no_thread() {
        let (socket, mut reader) = lingering();
        in_time(async move {
            let (mut stream, agent) = pair();
            assert_eq!(send(&agent, &socket), Ok(1));
            drop(socket);
            let error = stream.read_u8().await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        });
        let mut rest = Vec::new();
        let error = reader.read_to_end(&mut rest).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }

    #[test]
    fn an_unread_descriptor_blocks_no_thread_when_the_connection_is_dropped() {
        let (socket, _reader) = lingering();
        in_time(async move {
            let (stream, agent) = pair();
            assert_eq!(send(&agent, &socket), Ok(1));
            drop(socket);
            drop(stream);
        });
    }

    #[test]
    fn the_kernel_refuses_descriptors_at_their_sender_where_it_can() {
        let (socket, _reader) = lingering();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.sock");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        in_time(async move {
            let stream = AgentStream::connect(&path, Accepts::Bytes, Closer::shared());
            let mut stream = stream.await.unwrap();
            let (agent, _) = listener.accept().unwrap();
            let sent = send(&agent, &socket);
            sockopt::set_socket_linger(&socket, None).unwrap();
            if stream.is_refusing {
                assert_eq!(sent, Err(rustix::io::Errno::PERM));
                assert_eq!(send_bytes(&agent), Ok(1));
                assert_eq!(stream.read_u8().await.unwrap(), b'x');
            } else {
                assert!(stream.read_u8().await.is_err());
            }
        });
    }

    fn send_bytes(stream: impl AsFd) -> rustix::io::Result<usize> {
        rustix::net::send(stream, b"x", SendFlags::NOSIGNAL)
    }
}
