//! One link.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sandyard_agent_client::BoxedStream;
use sandyard_link::{Inbound, LinkStream, Mux, Side, StreamKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::channel::Channel;
use super::egress;

/// Interval between pings. The other end gives up after a minute without one.
const PING_INTERVAL: Duration = Duration::from_secs(15);
/// After this time without an answer, another link is tried. This one may still work: a paused container does not answer.
const SILENCE: Duration = Duration::from_secs(20);
/// How long a connection from the container may take to send its head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// A link to one container.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) mux: Mux,
    /// Egress channels, by number.
    channels: Mutex<Channels>,
    /// Since when a ping is unanswered.
    pending_since: Mutex<Option<Instant>>,
    /// The runtime of its tasks.
    runtime: Handle,
}

#[derive(Debug, Default)]
struct Channels {
    last: u32,
    open: HashMap<u32, Arc<Channel>>,
}

impl Link {
    /// Starts to use a stream.
    pub(super) fn start(stream: BoxedStream) -> Arc<Self> {
        let (mux, inbound) = Mux::start(stream, Side::Server);
        let link = Arc::new(Self {
            mux: mux.clone(),
            channels: Mutex::default(),
            pending_since: Mutex::new(None),
            runtime: Handle::current(),
        });
        // Neither task keeps the link alive: it ends when nothing uses it.
        let weak = Arc::downgrade(&link);
        tokio::spawn(accept_all(weak.clone(), inbound));
        tokio::spawn(async move {
            // An error ends the link, which other tasks notice.
            let _ = ping(weak, mux).await;
        });
        link
    }

    /// Connects to the agent.
    pub(super) async fn dial(&self) -> io::Result<LinkStream> {
        self.mux.open(&[StreamKind::Agent.byte()]).await
    }

    /// Opens an egress channel; waits for as long as the agent does not answer.
    pub(super) async fn open_egress(self: &Arc<Self>) -> io::Result<UnixStream> {
        let (gateway_end, own_end) = std::os::unix::net::UnixStream::pair()?;
        let (reader, writer) = self.adopt(own_end)?.into_split();
        let number = self.add(Channel::new(writer));
        let serving = egress::open(&self.mux, number.number).await?;
        self.runtime.spawn(async move {
            let channel = number.channel();
            let ended = egress::serve(serving, &channel, reader, &number.link.mux).await;
            tracing::debug!(error = ?ended.err(), "An egress channel of a container ended");
        });
        gateway_end.set_nonblocking(true)?;
        UnixStream::from_std(gateway_end)
    }

    /// Registers this side of a channel with this runtime; the gateway has its own.
    fn adopt(&self, socket: std::os::unix::net::UnixStream) -> io::Result<UnixStream> {
        socket.set_nonblocking(true)?;
        let _entered = self.runtime.enter();
        UnixStream::from_std(socket)
    }

    /// Whether it can no longer be used.
    pub(super) fn has_ended(&self) -> bool {
        self.mux.has_ended()
    }

    /// Whether the other end has not answered for a while.
    pub(super) fn is_silent(&self) -> bool {
        let pending_since = self.pending_since.lock();
        pending_since.is_some_and(|pending_since| pending_since.elapsed() > SILENCE)
    }

    fn set_pending(&self, at: Option<Instant>) {
        *self.pending_since.lock() = at;
    }

    fn add(self: &Arc<Self>, channel: Channel) -> Number {
        let mut channels = self.channels.lock();
        channels.last = channels.last.wrapping_add(1);
        let number = channels.last;
        let channel = Arc::new(channel);
        channels.open.insert(number, channel.clone());
        Number {
            link: self.clone(),
            number,
            channel,
        }
    }

    fn channel(&self, number: u32) -> Option<Arc<Channel>> {
        let channels = self.channels.lock();
        channels.open.get(&number).cloned()
    }

    /// Handles a connection that the container opened.
    async fn accept(&self, mut stream: LinkStream) -> io::Result<()> {
        let head = async {
            match StreamKind::from_byte(stream.read_u8().await?) {
                Some(StreamKind::Outgoing) => egress::read_head(&mut stream).await,
                _ => Err(io::ErrorKind::InvalidData.into()),
            }
        };
        let head = tokio::time::timeout(HEAD_TIMEOUT, head).await;
        let (number, frame) = head.map_err(|_| io::ErrorKind::TimedOut)??;
        let channel = self.channel(number).ok_or(io::ErrorKind::NotFound)?;
        egress::hand_over(&channel, &frame, stream).await
    }
}

/// A channel's entry, which is removed when this is dropped.
struct Number {
    link: Arc<Link>,
    number: u32,
    channel: Arc<Channel>,
}

impl Number {
    fn channel(&self) -> Arc<Channel> {
        self.channel.clone()
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        let mut channels = self.link.channels.lock();
        channels.open.remove(&self.number);
    }
}

/// Accepts the connections that the container opens. Their number is bounded by the multiplexer.
async fn accept_all(link: std::sync::Weak<Link>, mut inbound: Inbound) {
    while let Some(stream) = inbound.next().await {
        let Some(link) = link.upgrade() else { return };
        tokio::spawn(async move {
            if let Err(error) = link.accept(stream).await {
                tracing::debug!(%error, "An outgoing connection of a container ended");
            }
        });
    }
}

/// Pings the other end, which also shows it that this side is alive.
async fn ping(link: std::sync::Weak<Link>, mux: Mux) -> io::Result<()> {
    let mut stream = mux.open(&[StreamKind::Ping.byte()]).await?;
    // This handle must not keep the link alive.
    drop(mux);
    loop {
        let note = |at| link.upgrade().map(|link| link.set_pending(at));
        if note(Some(Instant::now())).is_none() {
            return Ok(());
        }
        stream.write_u8(0).await?;
        stream.flush().await?;
        // Without a timeout: a paused container answers later.
        stream.read_u8().await?;
        note(None);
        tokio::time::sleep(PING_INTERVAL).await;
    }
}
