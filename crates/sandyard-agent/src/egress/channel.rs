//! One connection to a gateway.

use std::cell::Cell;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::io::Errno;
use tokio::sync::{Mutex, Notify};

use crate::socket::Peer;

/// The pause while too many descriptors of this user are in flight: the kernel limits those that are not yet received.
const TOO_MANY_PAUSE: Duration = Duration::from_millis(10);

/// A connection that carries frames.
#[derive(Debug)]
pub(super) struct Channel {
    peer: Peer,
    /// Ascending in the order of attachment.
    pub(super) number: u64,
    /// Ascending in the order of `Lead` messages; zero if the gateway sent none.
    pub(super) lead: Cell<u64>,
    /// Held while a frame is written.
    pub(super) write_lock: Mutex<()>,
    is_closed: Cell<bool>,
    close_notify: Notify,
}

impl Channel {
    pub(super) fn new(peer: Peer, number: u64) -> Self {
        Self {
            peer,
            number,
            lead: Cell::new(0),
            write_lock: Mutex::new(()),
            is_closed: Cell::new(false),
            close_notify: Notify::new(),
        }
    }

    /// Writes a whole frame, the descriptor with its first byte. The caller holds the write lock.
    pub(super) async fn write(
        &self,
        frame: &[u8],
        mut descriptor: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let mut rest = frame;
        while !rest.is_empty() {
            match self.peer.send_with(rest, descriptor).await {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    descriptor = None;
                    rest = rest.get(count..).unwrap_or_default();
                }
                Err(error) if is_out_of_buffers(&error) => {
                    tokio::time::sleep(TOO_MANY_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Closes the connection.
    pub(super) fn close(&self) {
        self.is_closed.set(true);
        self.peer.close();
        self.close_notify.notify_waiters();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    /// Resolves when the connection is closed.
    pub(super) async fn closed(&self) {
        let notified = self.close_notify.notified();
        if !self.is_closed() {
            notified.await;
        }
    }
}

fn is_out_of_buffers(error: &io::Error) -> bool {
    let wants = [Errno::TOOMANYREFS, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|errno| wants.contains(&errno))
}
