//! Who reads a process's output, and how far each has come.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use sandyard_wire::EndEvent;
use tokio::time::Instant;

use super::ring::Channel;
use super::running::Process;

/// Most bytes in one event; a multiple of three, so that base64 needs no padding in the middle of long output.
const EVENT_BYTES: usize = 48 * 1024;

/// How long whoever passes output on may have it in hand: a server may be kept from its work for seconds, and then killed.
const IN_HAND: Duration = Duration::from_secs(5);

/// How much of it may be in hand however long it took: what a slow client leaves in buffers on the way.
const IN_HAND_BYTES: u64 = 1 << 20;

/// One attached reader.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) id: u64,
    pub(super) position: u64,
    /// When it last took something, or last had nothing to take.
    pub(super) progress: Instant,
    /// For one that passes output on: when it was where.
    trail: Option<Trail>,
}

/// Where a reader was at which time, as far back as output may still be in its hands.
#[derive(Debug, Default)]
struct Trail {
    steps: VecDeque<(Instant, u64)>,
}

impl Trail {
    /// Notes where a reader is about to leave from.
    fn note(&mut self, now: Instant, position: u64) {
        // What is older than needed goes, but for the youngest of it.
        while self
            .steps
            .get(1)
            .is_some_and(|(at, _)| now.duration_since(*at) > IN_HAND)
        {
            self.steps.pop_front();
        }
        let is_due = self
            .steps
            .back()
            .is_none_or(|(at, _)| now.duration_since(*at) > IN_HAND / 20);
        if is_due {
            self.steps.push_back((now, position));
        }
    }

    /// Up to where output has surely been passed on.
    fn passed(&self, now: Instant, position: u64, is_behind: bool) -> u64 {
        let recent = self
            .steps
            .iter()
            .find(|(at, _)| now.duration_since(*at) <= IN_HAND);
        let passed = recent.map_or(position, |(_, position)| *position);
        let least = position.saturating_sub(IN_HAND_BYTES);
        // One that was behind had a client that did not take what it was given.
        if is_behind { least } else { passed.max(least) }
    }
}

/// All readers of one process.
#[derive(Debug, Default)]
pub(super) struct Readers {
    attached: Vec<Attached>,
    last_id: u64,
    /// Where the last reader that left had come to.
    delivered: u64,
    /// Who that was, and where it would have come to had it said a word.
    silent: Option<(u64, u64)>,
}

impl Readers {
    fn get_mut(&mut self, id: u64) -> Option<&mut Attached> {
        self.attached.iter_mut().find(|reader| reader.id == id)
    }

    /// The reader furthest behind.
    pub(super) fn slowest(&self) -> Option<&Attached> {
        self.attached.iter().min_by_key(|reader| reader.position)
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
    pub(super) fn detach(&mut self, id: u64, end: u64) {
        let Some(at) = self.attached.iter().position(|reader| reader.id == id) else {
            return;
        };
        let reader = self.attached.swap_remove(at);
        if !self.attached.is_empty() {
            return;
        }
        self.delivered = reader.position;
        self.silent = None;
        if let Some(trail) = reader.trail {
            let is_behind = reader.position < end;
            self.delivered = trail.passed(Instant::now(), reader.position, is_behind);
            self.silent = Some((id, reader.position));
        }
    }

    /// Takes a reader's word that what it was given got where it was meant for.
    pub(super) fn take_word(&mut self, id: u64) {
        if let Some(reader) = self.get_mut(id) {
            reader.trail = None;
        } else if let Some((_, position)) = self.silent.take_if(|(silent, _)| *silent == id) {
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
    /// Whether it records the output of a kept command. What others read must still be kept for it.
    pub(super) is_recorder: bool,
}

impl Reader {
    /// Attaches at a position; whether the output is passed on to somebody else.
    pub(super) fn attach(process: &Rc<Process>, position: u64, is_relayed: bool) -> Self {
        let mut readers = process.readers.borrow_mut();
        readers.last_id += 1;
        let id = readers.last_id;
        readers.attached.push(Attached {
            id,
            position,
            progress: Instant::now(),
            trail: is_relayed.then(Trail::default),
        });
        drop(readers);
        Self {
            process: process.clone(),
            id,
            is_recorder: false,
        }
    }

    /// Its name among all readers of the agent.
    pub(super) fn name(&self) -> String {
        format!("{}-{}", self.process.pid, self.id)
    }

    /// Takes what comes next.
    pub(super) fn next(&self) -> Next {
        let mut readers = self.process.readers.borrow_mut();
        let Some(reader) = readers.get_mut(self.id) else {
            return Next::Detached;
        };
        if let Some((channel, bytes, position)) = self.process.read(reader.position, EVENT_BYTES) {
            let now = Instant::now();
            if let Some(trail) = &mut reader.trail {
                trail.note(now, reader.position);
            }
            reader.position = position;
            reader.progress = now;
            if self.is_recorder {
                self.process
                    .note_recorded(position.saturating_sub(IN_HAND_BYTES));
            }
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
        let end = self.process.ring.borrow().end();
        self.process.readers.borrow_mut().detach(self.id, end);
        self.process.room.notify_waiters();
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
            trail: Some(Trail::default()),
        });
        readers
    }

    fn take(readers: &mut Readers, id: u64, bytes: u64) {
        let reader = readers.get_mut(id).unwrap();
        let position = reader.position;
        reader
            .trail
            .as_mut()
            .unwrap()
            .note(Instant::now(), position);
        reader.position += bytes;
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_in_hand_when_it_fell_silent_comes_again() {
        let mut readers = relayed(7);
        take(&mut readers, 7, 100);
        tokio::time::advance(IN_HAND * 2).await;
        take(&mut readers, 7, 10);
        tokio::time::advance(IN_HAND / 2).await;
        take(&mut readers, 7, 10);
        readers.detach(7, 120);
        assert_eq!(readers.delivered(), 100);
        // Its word may come a moment later.
        readers.take_word(8);
        assert_eq!(readers.delivered(), 100);
        readers.take_word(7);
        assert_eq!(readers.delivered(), 120);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_gave_its_word_before_it_left_is_believed() {
        let mut readers = relayed(7);
        take(&mut readers, 7, 100);
        readers.take_word(7);
        readers.detach(7, 100);
        assert_eq!(readers.delivered(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_one_has_nothing_in_hand() {
        let mut readers = relayed(7);
        take(&mut readers, 7, 100);
        tokio::time::advance(IN_HAND * 2).await;
        readers.detach(7, 100);
        assert_eq!(readers.delivered(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_was_behind_may_have_much_in_hand() {
        let mut readers = relayed(7);
        take(&mut readers, 7, 3 * IN_HAND_BYTES);
        tokio::time::advance(IN_HAND * 2).await;
        readers.detach(7, 4 * IN_HAND_BYTES);
        assert_eq!(readers.delivered(), 2 * IN_HAND_BYTES);
    }
}
