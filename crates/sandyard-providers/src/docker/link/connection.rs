//! One link.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sandyard_agent_client::BoxedStream;
use sandyard_link::{Inbound, LinkStream, Mux, Side, StreamKind};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::channel::Channel;
use super::egress;

/// Between two questions whether the other end is there. It gives up after a minute without.
const PING_PAUSE: Duration = Duration::from_secs(15);
/// After so long without an answer another link is tried. This one may still be good: a paused container does not answer.
const SILENCE: Duration = Duration::from_secs(20);
/// How long a connection from inside may take to say what it is.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// A link to one container.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) mux: Mux,
    /// Channels of the way out, by number.
    channels: Mutex<Channels>,
    /// Since when an answer is waited for.
    asked: Mutex<Option<Instant>>,
    /// Where its tasks live.
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
            asked: Mutex::new(None),
            runtime: Handle::current(),
        });
        // Neither keeps the link: it ends when nobody uses it.
        let weak = Arc::downgrade(&link);
        tokio::spawn(take_in(weak.clone(), inbound));
        tokio::spawn(async move {
            // An error is the link's end, which others notice.
            let _ = ping(weak, mux).await;
        });
        link
    }

    /// Connects with the agent.
    pub(super) async fn dial(&self) -> io::Result<LinkStream> {
        self.mux.open(&[StreamKind::Agent.byte()]).await
    }

    /// Opens a channel of the way out, waiting for as long as the agent does not answer.
    pub(super) async fn open_egress(self: &Arc<Self>) -> io::Result<UnixStream> {
        let (gateways, ours) = std::os::unix::net::UnixStream::pair()?;
        let (reader, writer) = self.adopt(ours)?.into_split();
        let number = self.add(Channel::new(writer));
        let serving = egress::open(&self.mux, number.number).await?;
        self.runtime.spawn(async move {
            let channel = number.channel();
            let ended = egress::serve(serving, &channel, reader, &number.link.mux).await;
            tracing::debug!(error = ?ended.err(), "Channel of a container's way out ended");
        });
        gateways.set_nonblocking(true)?;
        UnixStream::from_std(gateways)
    }

    /// Puts our end of a channel on our event loop; the gateway has one of its own.
    fn adopt(&self, socket: std::os::unix::net::UnixStream) -> io::Result<UnixStream> {
        socket.set_nonblocking(true)?;
        let _entered = self.runtime.enter();
        UnixStream::from_std(socket)
    }

    /// Says whether it is of no more use.
    pub(super) fn has_ended(&self) -> bool {
        self.mux.has_ended()
    }

    /// Says whether the other end has not answered for a while.
    pub(super) fn is_silent(&self) -> bool {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.is_some_and(|asked| asked.elapsed() > SILENCE)
    }

    fn note_asked(&self, at: Option<Instant>) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }

    fn add(self: &Arc<Self>, channel: Channel) -> Number {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
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
        let channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        channels.open.get(&number).cloned()
    }

    /// Sees to a connection that the container opened.
    async fn take(&self, mut carried: LinkStream) -> io::Result<()> {
        let head = async {
            match StreamKind::from_byte(carried.read_u8().await?) {
                Some(StreamKind::Outgoing) => egress::read_head(&mut carried).await,
                _ => Err(io::ErrorKind::InvalidData.into()),
            }
        };
        let head = tokio::time::timeout(HEAD_TIME, head).await;
        let (number, frame) = head.map_err(|_| io::ErrorKind::TimedOut)??;
        let channel = self.channel(number).ok_or(io::ErrorKind::NotFound)?;
        egress::hand_over(&channel, &frame, carried).await
    }
}

/// A channel's place among the others, until it is dropped.
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
        let channels = self.link.channels.lock();
        let mut channels = channels.unwrap_or_else(PoisonError::into_inner);
        channels.open.remove(&self.number);
    }
}

/// Takes what the container opens. How many there are at once is bounded already.
async fn take_in(link: std::sync::Weak<Link>, mut inbound: Inbound) {
    while let Some(carried) = inbound.next().await {
        let Some(link) = link.upgrade() else { return };
        tokio::spawn(async move {
            if let Err(error) = link.take(carried).await {
                tracing::debug!(%error, "A connection out of a container ended");
            }
        });
    }
}

/// Asks now and then whether the other end is there, which also tells it that we are.
async fn ping(link: std::sync::Weak<Link>, mux: Mux) -> io::Result<()> {
    let mut carried = mux.open(&[StreamKind::Ping.byte()]).await?;
    // The link's own handle is what keeps it, not this one.
    drop(mux);
    loop {
        let note = |at| link.upgrade().map(|link| link.note_asked(at));
        if note(Some(Instant::now())).is_none() {
            return Ok(());
        }
        carried.write_u8(0).await?;
        carried.flush().await?;
        // However long that takes: a paused container answers later.
        carried.read_u8().await?;
        note(None);
        tokio::time::sleep(PING_PAUSE).await;
    }
}
