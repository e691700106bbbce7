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

use crate::carried::Carried;

/// Connections that one side may have opened at once. Fewer than yamux lets be without an acknowledgement.
const MOST_OPENED: usize = 200;
/// Connections of the other side's at once. More than an honest one opens: it may know sooner of an end than we do.
const MOST_TAKEN: usize = 300;
/// All of them, and those whose end is not said yet. A link with more is ended by yamux.
const MOST_STREAMS: usize = 512;
/// Memory for windows that grow beyond what each stream has anyway.
const EXTRA_WINDOW: usize = 16 << 20;
/// Connections that may wait to be looked at.
const MOST_WAITING: usize = 64;

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
    asking: mpsc::Sender<Asker>,
    slots: Arc<Semaphore>,
    end: CancellationToken,
}

/// Connections that the other side opens.
#[derive(Debug)]
pub struct Inbound(mpsc::Receiver<Carried>);

impl Inbound {
    /// The next one; none when the link has ended.
    pub async fn next(&mut self) -> Option<Carried> {
        self.0.recv().await
    }
}

type Asker = oneshot::Sender<yamux::Stream>;

impl Mux {
    /// Starts to carry connections over `stream`, in a task of its own.
    pub fn start<S>(stream: S, side: Side) -> (Self, Inbound)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let mut config = Config::default();
        let window = MOST_STREAMS * yamux::DEFAULT_CREDIT as usize + EXTRA_WINDOW;
        // In this order: each must fit the other at any time.
        config.set_max_connection_receive_window(None);
        config.set_max_num_streams(MOST_STREAMS);
        config.set_max_connection_receive_window(Some(window));
        let mode = match side {
            Side::Server => Mode::Client,
            Side::Container => Mode::Server,
        };
        let is_stuck = Arc::new(AtomicBool::new(false));
        let watched = Watched {
            stream,
            is_stuck: is_stuck.clone(),
        };
        let (asking, asked) = mpsc::channel(1);
        let (arriving, arrived) = mpsc::channel(MOST_WAITING);
        let end = CancellationToken::new();
        let driver = Driver {
            connection: Connection::new(watched.compat(), config, mode),
            asked,
            asker: None,
            arriving,
            slots: Arc::new(Semaphore::new(MOST_TAKEN)),
            is_stuck,
        };
        tokio::spawn(driver.run(end.clone()));
        let mux = Self {
            asking,
            slots: Arc::new(Semaphore::new(MOST_OPENED)),
            end,
        };
        (mux, Inbound(arrived))
    }

    /// Opens a connection that begins with `head`, waiting while there are too many.
    ///
    /// # Errors
    /// When the link has ended.
    pub async fn open(&self, head: &[u8]) -> io::Result<Carried> {
        let slot = self.slots.clone().acquire_owned().await;
        self.open_in(slot.map_err(io::Error::other)?, head).await
    }

    /// Opens a connection that begins with `head`, unless there are too many.
    ///
    /// # Errors
    /// When there are, or the link has ended.
    pub async fn open_if_room(&self, head: &[u8]) -> io::Result<Carried> {
        let slot = self.slots.clone().try_acquire_owned();
        self.open_in(slot.map_err(io::Error::other)?, head).await
    }

    async fn open_in(&self, slot: OwnedSemaphorePermit, head: &[u8]) -> io::Result<Carried> {
        let opening = async {
            let (asker, asked) = oneshot::channel();
            self.asking.send(asker).await.map_err(|_| gone())?;
            let stream = asked.await.map_err(|_| gone())?;
            let mut carried = Carried::new(stream, slot);
            carried.write_all(head).await?;
            carried.flush().await?;
            Ok(carried)
        };
        tokio::select! {
            opened = opening => opened,
            () = self.end.cancelled() => Err(gone()),
        }
    }

    /// Ends the link, and with it every connection.
    pub fn close(&self) {
        self.end.cancel();
    }

    /// Says whether it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.end.is_cancelled()
    }

    /// Resolves when it has ended.
    pub async fn ended(&self) {
        self.end.cancelled().await;
    }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the link has ended")
}

/// What makes everything move.
struct Driver<S> {
    connection: Connection<tokio_util::compat::Compat<Watched<S>>>,
    asked: mpsc::Receiver<Asker>,
    /// Who is to get the next one.
    asker: Option<Asker>,
    arriving: mpsc::Sender<Carried>,
    slots: Arc<Semaphore>,
    is_stuck: Arc<AtomicBool>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Driver<S> {
    async fn run(mut self, end: CancellationToken) {
        // However this task ends.
        let _end = end.clone().drop_guard();
        tokio::select! {
            () = end.cancelled() => {}
            () = poll_fn(|cx| self.poll(cx)) => {}
        }
    }

    /// Resolves when there is nothing left to do.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match self.connection.poll_next_inbound(cx) {
                Poll::Ready(Some(Ok(stream))) => {
                    self.take(stream);
                    continue;
                }
                Poll::Ready(None | Some(Err(_))) => return Poll::Ready(()),
                Poll::Pending => {}
            }
            // Streams that were dropped are only counted off when something can be sent.
            if self.is_stuck.load(Ordering::Relaxed) {
                return Poll::Pending;
            }
            if self.asker.as_ref().is_none_or(oneshot::Sender::is_closed) {
                self.asker = match self.asked.poll_recv(cx) {
                    Poll::Ready(Some(asker)) => Some(asker),
                    Poll::Ready(None) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                };
                continue;
            }
            match self.connection.poll_new_outbound(cx) {
                Poll::Ready(Ok(stream)) => {
                    // Who has left meanwhile has dropped it, too.
                    let _ = self.asker.take().map(|asker| asker.send(stream));
                }
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Passes a connection on, or drops it: who opens more than is looked at does without.
    fn take(&self, stream: yamux::Stream) {
        if let Ok(slot) = self.slots.clone().try_acquire_owned() {
            let _ = self.arriving.try_send(Carried::new(stream, slot));
        }
    }
}

/// A stream that says whether writing waits.
struct Watched<S> {
    stream: S,
    is_stuck: Arc<AtomicBool>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
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
