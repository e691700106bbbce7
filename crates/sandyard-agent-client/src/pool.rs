//! Idle connections, kept for the next unary call.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::connection::Sender;

/// How long an idle connection is trusted. Short, since an agent may close one at any time and a request sent at that
/// moment would fail.
const MAX_IDLE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Pool {
    idle: Mutex<Vec<Idle>>,
    capacity: usize,
}

#[derive(Debug)]
struct Idle {
    sender: Sender,
    since: Instant,
}

impl Pool {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            idle: Mutex::new(Vec::new()),
            capacity,
        }
    }

    /// Takes out the connection used last, the one most likely to be alive.
    pub(crate) fn take(&self) -> Option<Sender> {
        let mut idle = self.idle.lock();
        while let Some(Idle { sender, since }) = idle.pop() {
            if since.elapsed() < MAX_IDLE && !sender.is_closed() {
                return Some(sender);
            }
        }
        None
    }

    /// Keeps a connection whose reply has been read to its end.
    pub(crate) fn put(&self, sender: Sender) {
        if sender.is_closed() {
            return;
        }
        let mut idle = self.idle.lock();
        idle.retain(|idle| idle.since.elapsed() < MAX_IDLE && !idle.sender.is_closed());
        if idle.len() < self.capacity {
            idle.push(Idle {
                sender,
                since: Instant::now(),
            });
        }
    }
}
