//! Readers of a process's output and their positions.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use sandyard_wire::EndEvent;
use tokio::time::Instant;

use super::ring::Channel;
use super::tracked_process::Process;

/// Maximum bytes of output in one event; a multiple of three, so that base64 needs no padding in the middle of long output.
const EVENT_BYTES: usize = 48 * 1024;

/// How long a relay may hold output before it delivers it: a server may be delayed for seconds, and then killed.
const RELAY_TIME: Duration = Duration::from_secs(5);

/// How much output a relay may hold in buffers for a slow client, in bytes.
const RELAY_BYTES: u64 = 1 << 20;

/// One attached reader.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) id: u64,
    pub(super) position: u64,
    /// When it last took output, or last had none to take.
    pub(super) progress: Instant,
    /// For a relay: its positions over time.
    history: Option<RelayHistory>,
}

/// Positions of a relay over time, as far back as it may hold undelivered output.
#[derive(Debug, Default)]
struct RelayHistory {
    steps: VecDeque<(Instant, u64)>,
}

impl RelayHistory {
    /// Notes the reader's position before it advances.
    fn note(&mut self, now: Instant, position: u64) {
        // Drops what is older than needed, except the newest of it.
        while self
            .steps
            .get(1)
            .is_some_and(|(at, _)| now.duration_since(*at) > RELAY_TIME)
        {
            self.steps.pop_front();
        }
        let is_due = self
            .steps
            .back()
            .is_none_or(|(at, _)| now.duration_since(*at) > RELAY_TIME / 20);
        if is_due {
            self.steps.push_back((now, position));
        }
    }

    /// The position up to which output is certainly delivered.
    fn delivered(&self, now: Instant, position: u64, is_behind: bool) -> u64 {
        let recent = self
            .steps
            .iter()
            .find(|(at, _)| now.duration_since(*at) <= RELAY_TIME);
        let delivered = recent.map_or(position, |(_, position)| *position);
        let least = position.saturating_sub(RELAY_BYTES);
        // A reader that was behind had a slow client, so its buffers may be full.
        if is_behind {
            least
        } else {
            delivered.max(least)
        }
    }
}

/// All readers of one process.
#[derive(Debug, Default)]
pub(super) struct Readers {
    attached: Vec<Attached>,
    last_id: u64,
    /// The position up to which the last reader got the output.
    delivered: u64,
    /// A detached relay without confirmation: its id, and its position if it confirms later.
    unconfirmed: Option<(u64, u64)>,
}

impl Readers {
    fn get_mut(&mut self, id: u64) -> Option<&mut Attached> {
        self.attached.iter_mut().find(|reader| reader.id == id)
    }

    /// The reader furthest behind.
    pub(super) fn slowest(&self) -> Option<&Attached> {
        self.attached.iter().min_by_key(|reader| reader.position)
    }

    /// Restarts the stall timer of readers that had nothing to take until now.
    pub(super) fn mark_caught_up(&mut self, end: u64) {
        let now = Instant::now();
        for reader in &mut self.attached {
            if reader.position >= end {
                reader.progress = now;
            }
        }
    }

    /// Of `lost` bytes that ended at `start`, the number that no reader got.
    pub(super) fn delivered_before(&self, start: u64, lost: u64) -> u64 {
        let got = self
            .slowest()
            .map_or(self.delivered, |reader| reader.position);
        start.saturating_sub(got.max(start - lost))
    }

    /// Detaches a reader; it notices when it next reads.
    pub(super) fn detach(&mut self, id: u64, end: u64) {
        let Some(at) = self.attached.iter().position(|reader| reader.id == id) else {
            return;
        };
        let reader = self.attached.swap_remove(at);
        if !self.attached.is_empty() {
            return;
        }
        self.delivered = reader.position;
        self.unconfirmed = None;
        if let Some(history) = reader.history {
            let is_behind = reader.position < end;
            self.delivered = history.delivered(Instant::now(), reader.position, is_behind);
            self.unconfirmed = Some((id, reader.position));
        }
    }

    /// Confirms that a relay has delivered everything it was given.
    pub(super) fn confirm(&mut self, id: u64) {
        if let Some(reader) = self.get_mut(id) {
            reader.history = None;
        } else if let Some((_, position)) = self
            .unconfirmed
            .take_if(|(unconfirmed, _)| *unconfirmed == id)
        {
            self.delivered = position;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.attached.is_empty()
    }

    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }
}

/// What a reader gets.
#[derive(Debug)]
pub(super) enum Next {
    Output(Channel, Bytes),
    End(EndEvent),
    /// Nothing yet.
    Wait,
    /// It stalled for too long and was detached.
    Detached,
}

/// An attached reader; the process waits for it while it exists.
#[derive(Debug)]
pub(super) struct Reader {
    process: Rc<Process>,
    id: u64,
    /// Whether it records the output of a retained command. Output that only others read is retained for it.
    pub(super) is_recorder: bool,
}

impl Reader {
    /// Attaches a reader at a position; `is_relayed`: it relays the output to another client.
    pub(super) fn attach(process: &Rc<Process>, position: u64, is_relayed: bool) -> Self {
        let mut readers = process.readers.borrow_mut();
        readers.last_id += 1;
        let id = readers.last_id;
        readers.attached.push(Attached {
            id,
            position,
            progress: Instant::now(),
            history: is_relayed.then(RelayHistory::default),
        });
        drop(readers);
        Self {
            process: process.clone(),
            id,
            is_recorder: false,
        }
    }

    /// A name that is unique among all readers of the agent.
    pub(super) fn name(&self) -> String {
        format!("{}-{}", self.process.pid, self.id)
    }

    /// Reads the next output.
    pub(super) fn next(&self) -> Next {
        let mut readers = self.process.readers.borrow_mut();
        let Some(reader) = readers.get_mut(self.id) else {
            return Next::Detached;
        };
        if let Some((channel, bytes, position)) = self.process.read(reader.position, EVENT_BYTES) {
            let now = Instant::now();
            if let Some(history) = &mut reader.history {
                history.note(now, reader.position);
            }
            reader.position = position;
            reader.progress = now;
            if self.is_recorder {
                self.process
                    .note_recorded(position.saturating_sub(RELAY_BYTES));
            }
            self.process.reader_moved.notify_waiters();
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
        let end = self.process.ring.borrow().end();
        self.process.readers.borrow_mut().detach(self.id, end);
        self.process.reader_moved.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relayed(id: u64) -> Readers {
        let mut readers = Readers::default();
        readers.attached.push(Attached {
            id,
            position: 0,
            progress: Instant::now(),
            history: Some(RelayHistory::default()),
        });
        readers
    }

    fn take(readers: &mut Readers, id: u64, bytes: u64) {
        let reader = readers.get_mut(id).unwrap();
        let position = reader.position;
        reader
            .history
            .as_mut()
            .unwrap()
            .note(Instant::now(), position);
        reader.position += bytes;
    }

    #[tokio::test(start_paused = true)]
    async fn undelivered_output_of_a_lost_relay_is_sent_again() {
        let mut readers = relayed(7);
        take(&mut readers, 7, 100);
        tokio::time::advance(RELAY_TIME * 2).await;
        take(&mut readers, 7, 10);
        tokio::time::advance(RELAY_TIME / 2).await;
        take(&mut readers, 7, 10);
        readers.detach(7, 120);
        assert_eq!(readers.delivered(), 100);
        // The confirmation may come later.
        readers.confirm(8);
        assert_eq!(readers.delivered(), 100);
        readers.confirm(7);
        assert_eq!(readers.delivered(), 120);
    }

    #[tokio::test(start_paused = true)]
    async fn a_relay_that_confirmed_before_it_detached_has_delivered_all() {
        let mut readers = relayed(7);
        take(&mut readers, 7, 100);
        readers.confirm(7);
        readers.detach(7, 100);
        assert_eq!(readers.delivered(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_relay_holds_no_output() {
        let mut readers = relayed(7);
        take(&mut readers, 7, 100);
        tokio::time::advance(RELAY_TIME * 2).await;
        readers.detach(7, 100);
        assert_eq!(readers.delivered(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_relay_that_was_behind_may_hold_full_buffers() {
        let mut readers = relayed(7);
        take(&mut readers, 7, 3 * RELAY_BYTES);
        tokio::time::advance(RELAY_TIME * 2).await;
        readers.detach(7, 4 * RELAY_BYTES);
        assert_eq!(readers.delivered(), 2 * RELAY_BYTES);
    }
}
