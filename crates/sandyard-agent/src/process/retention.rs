//! Retention of a command for its recorder: its end, and the output that is not recorded yet.
//!
//! Output that leaves the ring before it is recorded goes to the [`Spool`], so that a server may be absent for a while:
//!
//! ```text
//!  0 ── recorded ── needed ═══ spool ═══ ring.start ═══ ring ═══ end
//! ```

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bytes::Bytes;
use sandyard_wire::host::RetainedCommand;
use tokio::time::Instant;

use super::ring::{Channel, Ring};
use super::spool::{Spool, SpoolBudget};

/// Maximum bytes moved to the spool in one write.
const MOVE_BYTES: usize = 256 * 1024;

/// The retention of a command until it is released.
#[derive(Debug)]
pub(super) struct Retention {
    pub(super) id: String,
    started: Instant,
    ended: Cell<Option<Instant>>,
    /// Output before this position is recorded outside the sandbox.
    needed: Cell<u64>,
    spool: RefCell<Spool>,
    is_released: Cell<bool>,
}

impl Retention {
    pub(super) fn new(id: String, budget: Rc<SpoolBudget>) -> Self {
        Self {
            id,
            started: Instant::now(),
            ended: Cell::default(),
            needed: Cell::default(),
            spool: RefCell::new(Spool::new(budget)),
            is_released: Cell::default(),
        }
    }

    /// Describes the command to the server.
    pub(super) fn info(&self, pid: u32) -> RetainedCommand {
        let millis = |from: Instant, to: Instant| {
            u64::try_from(to.duration_since(from).as_millis()).unwrap_or(u64::MAX)
        };
        RetainedCommand {
            id: self.id.clone(),
            pid,
            age_ms: millis(self.started, Instant::now()),
            ran_ms: self.ended.get().map(|ended| millis(self.started, ended)),
        }
    }

    pub(super) fn note_end(&self) {
        self.ended.set(Some(Instant::now()));
    }

    pub(super) fn note_recorded(&self, position: u64) {
        self.needed.set(self.needed.get().max(position));
        self.spool.borrow_mut().drop_before(self.needed.get());
    }

    pub(super) fn release(&self) {
        self.is_released.set(true);
        self.note_recorded(u64::MAX);
    }

    pub(super) fn is_released(&self) -> bool {
        self.is_released.get()
    }

    pub(super) fn spool_start(&self) -> Option<u64> {
        self.spool.borrow().start()
    }

    /// Reads what the spool has from `position` on.
    pub(super) fn read(&self, position: u64, max: usize) -> Option<(Channel, Bytes, u64)> {
        self.spool.borrow().read(position, max)
    }

    /// Moves the ring's oldest unrecorded output to the spool when `len` more bytes would not fit in `capacity`.
    /// Frees half of the capacity at once, so that a steady writer costs few writes.
    pub(super) fn make_space(&self, ring: &mut Ring, len: usize, capacity: usize) {
        let capacity = capacity.min(ring.capacity());
        // The last bytes of a ring may begin a new segment, which costs as much as some bytes.
        if ring.used().saturating_add(len) + 64 <= capacity {
            return;
        }
        let mut spool = self.spool.borrow_mut();
        ring.drop_before(self.needed.get());
        while ring.used().saturating_add(len) > capacity / 2 {
            let Some((channel, bytes, next)) = ring.read(ring.start(), MOVE_BYTES) else {
                return;
            };
            if !self.is_released.get() {
                spool.push(channel, ring.start(), &bytes);
            }
            ring.drop_before(next);
        }
    }
}
