//! Who reads a process's output, and how far each has come.

use std::rc::Rc;

use bytes::Bytes;
use sandyard_wire::EndEvent;
use tokio::time::Instant;

use super::ring::Channel;
use super::running::Process;

/// Most bytes in one event; a multiple of three, so that base64 needs no padding in the middle of long output.
const EVENT_BYTES: usize = 48 * 1024;

/// One attached reader.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attached {
    pub(super) id: u64,
    pub(super) position: u64,
    /// When it last took something, or last had nothing to take.
    pub(super) progress: Instant,
}

/// All readers of one process.
#[derive(Debug, Default)]
pub(super) struct Readers {
    attached: Vec<Attached>,
    last_id: u64,
    /// Where the last reader that left had come to.
    delivered: u64,
}

impl Readers {
    fn get_mut(&mut self, id: u64) -> Option<&mut Attached> {
        self.attached.iter_mut().find(|reader| reader.id == id)
    }

    /// The reader furthest behind.
    pub(super) fn slowest(&self) -> Option<Attached> {
        self.attached
            .iter()
            .min_by_key(|reader| reader.position)
            .copied()
    }

    /// Starts the patience of those that had nothing to take until now.
    pub(super) fn mark_caught_up(&mut self, end: u64) {
        let now = Instant::now();
        for reader in &mut self.attached {
            if reader.position >= end {
                reader.progress = now;
            }
        }
    }

    /// Of `lost` bytes that ended at `start`, how many no reader ever got.
    pub(super) fn delivered_before(&self, start: u64, lost: u64) -> u64 {
        let got = self
            .slowest()
            .map_or(self.delivered, |reader| reader.position);
        start.saturating_sub(got.max(start - lost))
    }

    /// Lets a reader go that holds everybody up; it learns of that when it next reads.
    pub(super) fn detach(&mut self, id: u64) {
        if let Some(at) = self.attached.iter().position(|reader| reader.id == id) {
            let reader = self.attached.swap_remove(at);
            if self.attached.is_empty() {
                self.delivered = reader.position;
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.attached.is_empty()
    }

    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }
}

/// What a reader finds.
#[derive(Debug)]
pub(super) enum Next {
    Output(Channel, Bytes),
    End(EndEvent),
    /// Nothing yet.
    Wait,
    /// It took nothing for so long that the process was let go on without it.
    Detached,
}

/// A place in a process's output; the process waits for it while it exists.
#[derive(Debug)]
pub(super) struct Reader {
    process: Rc<Process>,
    id: u64,
}

impl Reader {
    /// Attaches at a position.
    pub(super) fn attach(process: &Rc<Process>, position: u64) -> Self {
        let mut readers = process.readers.borrow_mut();
        readers.last_id += 1;
        let id = readers.last_id;
        readers.attached.push(Attached {
            id,
            position,
            progress: Instant::now(),
        });
        drop(readers);
        Self {
            process: process.clone(),
            id,
        }
    }

    /// Takes what comes next.
    pub(super) fn next(&self) -> Next {
        let mut readers = self.process.readers.borrow_mut();
        let Some(reader) = readers.get_mut(self.id) else {
            return Next::Detached;
        };
        let ring = self.process.ring.borrow();
        if let Some((channel, bytes, position)) = ring.read(reader.position, EVENT_BYTES) {
            reader.position = position;
            reader.progress = Instant::now();
            self.process.room.notify_waiters();
            return Next::Output(channel, bytes);
        }
        match self.process.end() {
            Some((end, _)) => Next::End(end.clone()),
            None => Next::Wait,
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.process.readers.borrow_mut().detach(self.id);
        self.process.room.notify_waiters();
    }
}
