//! All connections to gateways, and the choice of the leading one.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::time::Duration;

use sandyard_wire::egress::{FromAgent, encode};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::channel::Channel;
use crate::socket::Peer;

/// Maximum number of connections to gateways.
const MAX_CHANNELS: usize = 64;

/// How long a message waits while no gateway is attached; the server may be restarting.
const GATEWAY_WAIT: Duration = Duration::from_secs(15);

/// How long a gateway may take to accept a frame before the next gateway is used.
const WRITE_TIME: Duration = Duration::from_secs(15);

/// How long a message is tried with one gateway after another.
const SEND_TIME: Duration = Duration::from_secs(60);

/// The connections to gateways.
#[derive(Debug, Default)]
pub(super) struct Channels {
    attached: RefCell<Vec<Rc<Channel>>>,
    /// Counts attachments and `Lead` messages.
    clock: Cell<u64>,
    changed: Notify,
}

/// Why a message was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendError {
    /// No gateway attached in time.
    NoGateway,
    /// The message does not fit into a frame.
    TooLong,
}

impl Channels {
    /// Whether another gateway may attach.
    pub(super) fn has_capacity(&self) -> bool {
        self.attached.borrow().len() < MAX_CHANNELS
    }

    /// Adds a connection.
    pub(super) fn add(&self, peer: Peer) -> Rc<Channel> {
        let channel = Rc::new(Channel::new(peer, self.tick()));
        self.attached.borrow_mut().push(channel.clone());
        self.changed.notify_waiters();
        channel
    }

    /// Makes this connection the leading one.
    pub(super) fn set_leader(&self, channel: &Channel) {
        channel.lead.set(self.tick());
        self.changed.notify_waiters();
    }

    /// Closes and removes a connection.
    pub(super) fn remove(&self, channel: &Channel) {
        channel.close();
        self.attached
            .borrow_mut()
            .retain(|other| other.number != channel.number);
        self.changed.notify_waiters();
    }

    /// The connection that last sent `Lead`, else the oldest.
    fn leader(&self) -> Option<Rc<Channel>> {
        let attached = self.attached.borrow();
        let leader = attached
            .iter()
            .max_by_key(|channel| (channel.lead.get(), Reverse(channel.number)));
        leader.cloned()
    }

    /// Resolves when there is no connection.
    pub(super) async fn all_closed(&self) {
        self.until(|leader| leader.is_none().then_some(())).await;
    }

    /// Sends a message, with or without a descriptor, to the leading gateway, and returns its connection.
    ///
    /// A gateway acts on whole frames only. One that fails in the middle of a frame has not taken the descriptor, so the next
    /// one may get it.
    pub(super) async fn send(
        &self,
        message: &FromAgent,
        descriptor: Option<BorrowedFd<'_>>,
    ) -> Result<Rc<Channel>, SendError> {
        let give_up = Instant::now() + SEND_TIME;
        while Instant::now() < give_up {
            let leader = timeout(GATEWAY_WAIT, self.until(|leader| leader)).await;
            let channel = leader.map_err(|_| SendError::NoGateway)?;
            let lock = tokio::select! {
                lock = channel.write_lock.lock() => lock,
                () = self.until_another_leads(&channel) => continue,
            };
            if channel.is_closed() {
                continue;
            }
            // Encoded under the lock: of all waiting messages only one holds its frame in memory.
            let frame = encode(message).map_err(|_| SendError::TooLong)?;
            let mut attempt = Attempt {
                channels: self,
                channel: &channel,
                is_done: false,
            };
            let written = timeout(WRITE_TIME, channel.write(&frame, descriptor)).await;
            attempt.is_done = matches!(written, Ok(Ok(())));
            let is_done = attempt.is_done;
            drop(attempt);
            drop(lock);
            if is_done {
                return Ok(channel);
            }
        }
        Err(SendError::NoGateway)
    }

    async fn until_another_leads(&self, channel: &Channel) {
        let is_another = |leader: Rc<Channel>| leader.number != channel.number;
        self.until(|leader| leader.is_none_or(is_another).then_some(()))
            .await;
    }

    /// Waits until `select` returns a value for the leading connection.
    async fn until<T>(&self, select: impl Fn(Option<Rc<Channel>>) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            if let Some(selected) = select(self.leader()) {
                return selected;
            }
            changed.await;
        }
    }

    fn tick(&self) -> u64 {
        self.clock.set(self.clock.get() + 1);
        self.clock.get()
    }
}

/// The write of one frame. Nothing can follow half a frame, so an incomplete write closes the connection.
struct Attempt<'a> {
    channels: &'a Channels,
    channel: &'a Channel,
    is_done: bool,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.channels.remove(self.channel);
        }
    }
}
