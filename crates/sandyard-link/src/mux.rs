//! The connections over one stream of bytes.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio_util::compat::TokioAsyncReadCompatExt;
use tokio_util::sync::CancellationToken;
use yamux::{Config, Connection, Mode};

use crate::link_stream::LinkStream;

/// Maximum number of open connections that one side opened. Fewer than yamux allows without an acknowledgement.
const MAX_OPENED: usize = 200;
/// Maximum number of open connections that the other side opened. More than an honest side opens, because it may see an end earlier.
const MAX_ACCEPTED: usize = 300;
/// Maximum number of streams, also those whose end is not sent yet. yamux ends a link with more.
const MAX_STREAMS: usize = 512;
/// Memory for windows that grow beyond the default of each stream, in bytes.
const EXTRA_WINDOW: usize = 16 << 20;
/// Maximum number of connections that wait to be accepted.
const MAX_WAITING: usize = 64;

/// Which end this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The server.
    Server,
    /// The container.
    Container,
}

/// Opens connections. The last one to be dropped ends the link.
#[derive(Clone, Debug)]
pub struct Mux {
    requests: mpsc::Sender<StreamRequest>,
    slots: Arc<Semaphore>,
    end: CancellationToken,
}

/// Connections that the other side opens.
#[derive(Debug)]
pub struct Inbound(mpsc::Receiver<LinkStream>);

impl Inbound {
    /// The next connection; `None` when the link has ended.
    pub async fn next(&mut self) -> Option<LinkStream> {
        self.0.recv().await
    }
}

/// Where the driver sends a newly opened stream.
type StreamRequest = oneshot::Sender<yamux::Stream>;

impl Mux {
    /// Starts a task that carries connections over `stream`.
    pub fn start<S>(stream: S, side: Side) -> (Self, Inbound)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let mut config = Config::default();
        let window = MAX_STREAMS * yamux::DEFAULT_CREDIT as usize + EXTRA_WINDOW;
        // In this order, because each setter checks its value against the other.
        config.set_max_connection_receive_window(None);
        config.set_max_num_streams(MAX_STREAMS);
        config.set_max_connection_receive_window(Some(window));
        let mode = match side {
            Side::Server => Mode::Client,
            Side::Container => Mode::Server,
        };
        let is_stuck = Arc::new(AtomicBool::new(false));
        let watched = WriteWatch {
            stream,
            is_stuck: is_stuck.clone(),
        };
        let (requests, requested) = mpsc::channel(1);
        let (arriving, arrived) = mpsc::channel(MAX_WAITING);
        let end = CancellationToken::new();
        let driver = Driver {
            connection: Connection::new(watched.compat(), config, mode),
            requested,
            request: None,
            arriving,
            slots: Arc::new(Semaphore::new(MAX_ACCEPTED)),
            is_stuck,
        };
        tokio::spawn(driver.run(end.clone()));
        let mux = Self {
            requests,
            slots: Arc::new(Semaphore::new(MAX_OPENED)),
            end,
        };
        (mux, Inbound(arrived))
    }

    /// Opens a connection that begins with `head`; waits while too many are open.
    ///
    /// # Errors
    /// When the link has ended.
    pub async fn open(&self, head: &[u8]) -> io::Result<LinkStream> {
        let slot = self.slots.clone().acquire_owned().await;
        self.open_in(slot.map_err(io::Error::other)?, head).await
    }

    /// Opens a connection that begins with `head`, unless too many are open.
    ///
    /// # Errors
    /// When too many are open, or the link has ended.
    pub async fn try_open(&self, head: &[u8]) -> io::Result<LinkStream> {
        let slot = self.slots.clone().try_acquire_owned();
        self.open_in(slot.map_err(io::Error::other)?, head).await
    }

    async fn open_in(&self, slot: OwnedSemaphorePermit, head: &[u8]) -> io::Result<LinkStream> {
        let opening = async {
            let (request, opened) = oneshot::channel();
            self.requests
                .send(request)
                .await
                .map_err(|_| link_ended())?;
            let stream = opened.await.map_err(|_| link_ended())?;
            let mut stream = LinkStream::new(stream, slot);
            stream.write_all(head).await?;
            stream.flush().await?;
            Ok(stream)
        };
        tokio::select! {
            opened = opening => opened,
            () = self.end.cancelled() => Err(link_ended()),
        }
    }

    /// Ends the link, and with it every connection.
    pub fn close(&self) {
        self.end.cancel();
    }

    /// Whether the link has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.end.is_cancelled()
    }

    /// Resolves when the link has ended.
    pub async fn ended(&self) {
        self.end.cancelled().await;
    }
}

fn link_ended() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the link has ended")
}

/// Drives the yamux connection.
struct Driver<S> {
    connection: Connection<tokio_util::compat::Compat<WriteWatch<S>>>,
    requested: mpsc::Receiver<StreamRequest>,
    /// Gets the next stream.
    request: Option<StreamRequest>,
    arriving: mpsc::Sender<LinkStream>,
    slots: Arc<Semaphore>,
    is_stuck: Arc<AtomicBool>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Driver<S> {
    async fn run(mut self, end: CancellationToken) {
        // Marks the link as ended, however this task ends.
        let _end = end.clone().drop_guard();
        tokio::select! {
            () = end.cancelled() => {}
            () = poll_fn(|cx| self.poll(cx)) => {}
        }
    }

    /// Resolves when the link has ended.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match self.connection.poll_next_inbound(cx) {
                Poll::Ready(Some(Ok(stream))) => {
                    self.accept(stream);
                    continue;
                }
                Poll::Ready(None | Some(Err(_))) => return Poll::Ready(()),
                Poll::Pending => {}
            }
            // yamux forgets dropped streams only when it can send.
            if self.is_stuck.load(Ordering::Relaxed) {
                return Poll::Pending;
            }
            if self.request.as_ref().is_none_or(oneshot::Sender::is_closed) {
                self.request = match self.requested.poll_recv(cx) {
                    Poll::Ready(Some(request)) => Some(request),
                    Poll::Ready(None) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                };
                continue;
            }
            match self.connection.poll_new_outbound(cx) {
                Poll::Ready(Ok(stream)) => {
                    // A caller that gave up drops the stream.
                    let _ = self.request.take().map(|request| request.send(stream));
                }
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Passes a new connection on, or drops it when there are too many.
    fn accept(&self, stream: yamux::Stream) {
        if let Ok(slot) = self.slots.clone().try_acquire_owned() {
            let _ = self.arriving.try_send(LinkStream::new(stream, slot));
        }
    }
}

/// A stream that notes whether its last write was pending.
struct WriteWatch<S> {
    stream: S,
    is_stuck: Arc<AtomicBool>,
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteWatch<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteWatch<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.is_stuck.store(written.is_pending(), Ordering::Relaxed);
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
