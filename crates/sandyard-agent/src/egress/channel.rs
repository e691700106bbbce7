//! One connection with a gateway.

use std::cell::Cell;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::io::Errno;
use tokio::sync::{Mutex, Notify};

use crate::socket::Peer;

/// A pause while too many descriptors of this user are on their way: the kernel counts those not yet received.
const TOO_MANY_PAUSE: Duration = Duration::from_millis(10);

/// A connection on which frames are spoken.
#[derive(Debug)]
pub(super) struct Channel {
    peer: Peer,
    /// Higher for younger ones.
    pub(super) number: u64,
    /// Higher for those that said so later; zero for those that never wanted to lead.
    pub(super) lead: Cell<u64>,
    /// Held by whoever writes a frame.
    pub(super) turn: Mutex<()>,
    is_broken: Cell<bool>,
    broke: Notify,
}

impl Channel {
    pub(super) fn new(peer: Peer, number: u64) -> Self {
        Self {
            peer,
            number,
            lead: Cell::new(0),
            turn: Mutex::new(()),
            is_broken: Cell::new(false),
            broke: Notify::new(),
        }
    }

    /// Writes a whole frame, the descriptor with its first byte. Only for the holder of the turn.
    pub(super) async fn write(
        &self,
        frame: &[u8],
        mut carried: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let mut rest = frame;
        while !rest.is_empty() {
            match self.peer.send_with(rest, carried).await {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    carried = None;
                    rest = rest.get(count..).unwrap_or_default();
                }
                Err(error) if is_for_want_of_room(&error) => {
                    tokio::time::sleep(TOO_MANY_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Ends it for good.
    pub(super) fn break_off(&self) {
        self.is_broken.set(true);
        self.peer.close();
        self.broke.notify_waiters();
    }

    pub(super) fn is_broken(&self) -> bool {
        self.is_broken.get()
    }

    /// Resolves when it is of no use any more.
    pub(super) async fn until_broken(&self) {
        let broke = self.broke.notified();
        if !self.is_broken() {
            broke.await;
        }
    }
}

fn is_for_want_of_room(error: &io::Error) -> bool {
    let wants = [Errno::TOOMANYREFS, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|errno| wants.contains(&errno))
}
