//! All connections with gateways, and the choice of the one that is used.

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

/// Most connections with gateways at once.
const MAX_CHANNELS: usize = 64;

/// How long something waits for a gateway while none is there; the server may be starting anew.
const GATEWAY_WAIT: Duration = Duration::from_secs(15);

/// How long a gateway may take to make room for a frame before the next one is used.
const WRITE_TIME: Duration = Duration::from_secs(15);

/// How long a message is tried with one gateway after the other.
const SEND_TIME: Duration = Duration::from_secs(60);

/// The connections with gateways.
#[derive(Debug, Default)]
pub(super) struct Channels {
    attached: RefCell<Vec<Rc<Channel>>>,
    /// Counts attachments and claims to lead.
    clock: Cell<u64>,
    changed: Notify,
}

/// Why a message was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unsent {
    /// There was no gateway in all the time it could wait.
    NoGateway,
    /// It does not fit into a frame.
    TooLong,
}

impl Channels {
    /// Whether there is room for one more.
    pub(super) fn has_room(&self) -> bool {
        self.attached.borrow().len() < MAX_CHANNELS
    }

    /// Adds a connection.
    pub(super) fn add(&self, peer: Peer) -> Rc<Channel> {
        let channel = Rc::new(Channel::new(peer, self.tick()));
        self.attached.borrow_mut().push(channel.clone());
        self.changed.notify_waiters();
        channel
    }

    /// Prefers this connection from now on.
    pub(super) fn let_lead(&self, channel: &Channel) {
        channel.lead.set(self.tick());
        self.changed.notify_waiters();
    }

    /// Ends a connection.
    pub(super) fn part_with(&self, channel: &Channel) {
        channel.break_off();
        self.attached
            .borrow_mut()
            .retain(|other| other.number != channel.number);
        self.changed.notify_waiters();
    }

    /// The one that last wanted to lead, else the oldest.
    fn leader(&self) -> Option<Rc<Channel>> {
        let attached = self.attached.borrow();
        let leader = attached
            .iter()
            .max_by_key(|channel| (channel.lead.get(), Reverse(channel.number)));
        leader.cloned()
    }

    /// Resolves when there is no connection left.
    pub(super) async fn until_none(&self) {
        self.until(|leader| leader.is_none().then_some(())).await;
    }

    /// Sends a message, with a descriptor or without, to the gateway that leads, and says which that was.
    ///
    /// A gateway acts on whole frames only, so one that breaks in the middle of a frame has not taken the descriptor, and the
    /// next may have it.
    pub(super) async fn send(
        &self,
        message: &FromAgent,
        carried: Option<BorrowedFd<'_>>,
    ) -> Result<Rc<Channel>, Unsent> {
        let give_up = Instant::now() + SEND_TIME;
        while Instant::now() < give_up {
            let leader = timeout(GATEWAY_WAIT, self.until(|leader| leader)).await;
            let channel = leader.map_err(|_| Unsent::NoGateway)?;
            let turn = tokio::select! {
                turn = channel.turn.lock() => turn,
                () = self.until_another_leads(&channel) => continue,
            };
            if channel.is_broken() {
                continue;
            }
            // Made only now: of all that wait here, one at a time holds its frame in memory.
            let frame = encode(message).map_err(|_| Unsent::TooLong)?;
            let mut attempt = Attempt {
                channels: self,
                channel: &channel,
                is_done: false,
            };
            let written = timeout(WRITE_TIME, channel.write(&frame, carried)).await;
            attempt.is_done = matches!(written, Ok(Ok(())));
            let is_done = attempt.is_done;
            drop(attempt);
            drop(turn);
            if is_done {
                return Ok(channel);
            }
        }
        Err(Unsent::NoGateway)
    }

    async fn until_another_leads(&self, channel: &Channel) {
        let is_another = |leader: Rc<Channel>| leader.number != channel.number;
        self.until(|leader| leader.is_none_or(is_another).then_some(()))
            .await;
    }

    /// Waits until `found` makes something of the connection that leads.
    async fn until<T>(&self, found: impl Fn(Option<Rc<Channel>>) -> Option<T>) -> T {
        loop {
            let changed = self.changed.notified();
            if let Some(found) = found(self.leader()) {
                return found;
            }
            changed.await;
        }
    }

    fn tick(&self) -> u64 {
        self.clock.set(self.clock.get() + 1);
        self.clock.get()
    }
}

/// The writing of one frame. After half of one nothing can follow, so a connection that was left there is ended.
struct Attempt<'a> {
    channels: &'a Channels,
    channel: &'a Channel,
    is_done: bool,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.channels.part_with(self.channel);
        }
    }
}
