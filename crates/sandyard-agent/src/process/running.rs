//! One process as the agent knows it, from its start until it is forgotten.

use std::cell::{Cell, OnceCell, RefCell};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use rustix::process::Pid;
use sandyard_wire::EndEvent;
use sandyard_wire::process::{ProcessConfig, ProcessInfo};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::input::{Input, InputState};
use super::keep::Keep;
use super::reader::Readers;
use super::ring::{Channel, Ring};
use crate::activity::Counters;
use crate::start::Log;

/// How long a reader may block a process without taking anything.
pub(super) const STALL: Duration = Duration::from_secs(30);

/// What every process may keep, however much the others do.
const FLOOR_BYTES: usize = 64 * 1024;

/// What all processes together may keep before each is held to [`FLOOR_BYTES`].
const BUDGET_BYTES: usize = 32 * 1024 * 1024;

/// Memory of all rings together.
#[derive(Debug, Default)]
pub(crate) struct Budget(Cell<usize>);

impl Budget {
    fn capacity(&self) -> usize {
        if self.0.get() > BUDGET_BYTES {
            FLOOR_BYTES
        } else {
            usize::MAX
        }
    }

    fn change(&self, before: usize, after: usize) {
        self.0.set((self.0.get() + after).saturating_sub(before));
    }
}

/// What a process is made of at birth.
pub(super) struct Birth {
    pub(super) pid: u32,
    pub(super) minder: Pid,
    pub(super) tag: Option<String>,
    pub(super) config: ProcessConfig,
    pub(super) input: Option<Input>,
    pub(super) terminal: Option<OwnedFd>,
    pub(super) ring_bytes: usize,
    pub(super) budget: Rc<Budget>,
    pub(super) counters: Rc<Counters>,
    pub(super) log: Option<Log>,
    pub(super) keep: Option<Keep>,
}

/// A process, running or finished.
#[derive(Debug)]
pub(crate) struct Process {
    pub(super) pid: u32,
    /// Never given to another process, unlike the pid.
    pub(super) unique_id: String,
    pub(super) minder: Pid,
    pub(super) tag: Option<String>,
    pub(super) is_terminal: bool,
    config: RefCell<ProcessConfig>,
    pub(super) input: tokio::sync::Mutex<Option<Input>>,
    pub(super) input_state: InputState,
    terminal: RefCell<Option<OwnedFd>>,
    pub(super) ring: RefCell<Ring>,
    /// False once the output of a finished process was dropped.
    pub(super) has_output: Cell<bool>,
    pub(super) readers: RefCell<Readers>,
    budget: Rc<Budget>,
    pub(super) counters: Rc<Counters>,
    log: Option<Log>,
    pub(super) keep: Option<Keep>,
    /// Output nobody got.
    pub(super) dropped: Cell<u64>,
    /// Output or the end came.
    pub(super) changed: Notify,
    /// A reader took something or left.
    pub(super) room: Notify,
    /// The command itself is over; its last output may still be on the way.
    over: Cell<bool>,
    over_notify: Notify,
    pub(super) timed_out: Cell<bool>,
    end: OnceCell<(EndEvent, Instant)>,
}

impl Process {
    pub(super) fn new(birth: Birth) -> Self {
        let ring_bytes = ring_bytes(&birth);
        Self {
            pid: birth.pid,
            unique_id: unique_id(birth.pid),
            minder: birth.minder,
            tag: birth.tag,
            is_terminal: birth.terminal.is_some(),
            config: RefCell::new(birth.config),
            input: tokio::sync::Mutex::new(birth.input),
            input_state: InputState::default(),
            terminal: RefCell::new(birth.terminal),
            ring: RefCell::new(Ring::new(ring_bytes)),
            has_output: Cell::new(true),
            readers: RefCell::default(),
            budget: birth.budget,
            counters: birth.counters,
            log: birth.log,
            keep: birth.keep,
            dropped: Cell::default(),
            changed: Notify::new(),
            room: Notify::new(),
            over: Cell::default(),
            over_notify: Notify::new(),
            timed_out: Cell::default(),
            end: OnceCell::new(),
        }
    }

    /// What `List` tells of it.
    pub(super) fn info(&self) -> ProcessInfo {
        ProcessInfo {
            config: self.config.borrow().clone(),
            pid: self.pid,
            tag: self.tag.clone(),
        }
    }

    /// How and when it ended, once it has and all of its output is here.
    pub(super) fn end(&self) -> Option<&(EndEvent, Instant)> {
        self.end.get()
    }

    /// Whether it is still to be listed and signalled.
    pub(crate) fn is_running(&self) -> bool {
        !self.over.get()
    }

    /// Appends output, dropping the oldest when it has to.
    pub(super) fn push(&self, channel: Channel, bytes: &[u8]) {
        if let Some(log) = &self.log {
            return log.write(bytes);
        }
        let mut ring = self.ring.borrow_mut();
        self.readers.borrow_mut().mark_caught_up(ring.end());
        let before = ring.used();
        if let Some(keep) = &self.keep {
            keep.make_room(&mut ring, bytes.len(), self.budget.capacity());
        }
        let lost = ring.push(channel, bytes, self.budget.capacity());
        self.budget.change(before, ring.used());
        let unread = self.readers.borrow().delivered_before(ring.start(), lost);
        self.dropped.set(self.dropped.get() + unread);
        drop(ring);
        self.counters.add_bytes(bytes.len());
        self.changed.notify_waiters();
    }

    /// Waits until `len` bytes can be taken without losing any that an attached reader still needs.
    pub(super) async fn wait_for_room(&self, len: usize) {
        loop {
            let room = self.room.notified();
            let Some((reader, since)) = self.blocking_reader(len) else {
                return;
            };
            tokio::select! {
                () = room => {}
                () = tokio::time::sleep_until(since + STALL) => self.detach(reader),
            }
        }
    }

    fn blocking_reader(&self, len: usize) -> Option<(u64, Instant)> {
        let readers = self.readers.borrow();
        let slowest = readers.slowest()?;
        let ring = self.ring.borrow();
        let capacity = match &self.keep {
            // The other half holds what the slowest reader was given and may not have recorded yet.
            Some(_) => self.budget.capacity().min(ring.capacity() / 2),
            None => self.budget.capacity(),
        };
        let fits = ring.fits(len, slowest.position, capacity);
        (!fits).then_some((slowest.id, slowest.progress))
    }

    fn detach(&self, reader: u64) {
        let end = self.ring.borrow().end();
        self.readers.borrow_mut().detach(reader, end);
        self.changed.notify_waiters();
    }

    /// Notes that the command is over.
    pub(super) fn set_over(&self) {
        self.over.set(true);
        self.over_notify.notify_waiters();
    }

    /// Resolves once the command is over.
    pub(crate) async fn wait_over(&self) {
        let over = self.over_notify.notified();
        if !self.over.get() {
            over.await;
        }
    }

    /// Notes the end, with all output in place, and lets go of what only a running process needs.
    pub(super) fn finish(&self, end: EndEvent) {
        let _ = self.end.set((end, Instant::now()));
        self.config.take();
        self.terminal.take();
        if let Ok(mut input) = self.input.try_lock() {
            input.take();
        }
        let mut ring = self.ring.borrow_mut();
        if let Some(keep) = &self.keep {
            keep.note_end();
            if self.readers.borrow().is_empty() {
                let before = ring.used();
                keep.make_room(&mut ring, 0, FLOOR_BYTES);
                self.budget.change(before, ring.used());
            }
        }
        ring.settle();
        drop(ring);
        self.counters.touch();
        self.changed.notify_waiters();
    }

    /// Position of the oldest output that can still be read.
    pub(super) fn output_start(&self) -> u64 {
        let start = self.ring.borrow().start();
        let spooled = self.keep.as_ref().and_then(Keep::spool_start);
        spooled.map_or(start, |spooled| spooled.min(start))
    }

    /// Copies out what follows `position`, as [`Ring::read`] does.
    pub(super) fn read(&self, position: u64, max: usize) -> Option<(Channel, Bytes, u64)> {
        let ring = self.ring.borrow();
        if position < ring.start()
            && let Some(keep) = &self.keep
            && let Some(read) = keep.read(position, max)
        {
            return Some(read);
        }
        ring.read(position, max)
    }

    /// Notes that everything before `position` is recorded outside the sandbox.
    pub(super) fn note_recorded(&self, position: u64) {
        if let Some(keep) = &self.keep {
            keep.note_recorded(position);
        }
    }

    /// Whether somebody outside still has to take its output and end.
    pub(super) fn is_kept(&self) -> bool {
        self.keep.as_ref().is_some_and(|keep| !keep.is_released())
    }

    /// Gives memory back, of a finished process whose output is in the way.
    pub(super) fn forget_output(&self) {
        self.has_output.set(false);
        let mut ring = self.ring.borrow_mut();
        let before = ring.used();
        ring.shrink(0);
        ring.settle();
        self.budget.change(before, ring.used());
        self.note_recorded(ring.end());
    }

    /// Calls with the terminal, if it has one that is still open.
    pub(super) fn with_terminal<R>(&self, work: impl FnOnce(&OwnedFd) -> R) -> Option<R> {
        self.terminal.borrow().as_ref().map(work)
    }
}

/// Names a process by its pid and the time of its start: the kernel gives no pid twice within a microsecond.
fn unique_id(pid: u32) -> String {
    let since_epoch = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    format!("{pid}-{:x}", since_epoch.as_micros())
}

/// How much of its output a process keeps in memory; twice as much if what a reader was given has to stay.
fn ring_bytes(birth: &Birth) -> usize {
    let bytes = birth.ring_bytes.max(FLOOR_BYTES);
    if birth.keep.is_some() {
        2 * bytes
    } else {
        bytes
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.budget.change(self.ring.borrow().used(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::reader::{Next, Reader};
    use super::*;

    fn process() -> Rc<Process> {
        Rc::new(Process::new(Birth {
            pid: 1,
            minder: Pid::INIT,
            tag: None,
            config: ProcessConfig::default(),
            input: None,
            terminal: None,
            ring_bytes: FLOOR_BYTES,
            budget: Rc::default(),
            counters: Rc::default(),
            log: None,
            keep: None,
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_for_long_is_let_go() {
        let process = process();
        let reader = Reader::attach(&process, 0, false);
        tokio::time::advance(STALL * 10).await;
        process.push(Channel::Stdout, &[b'x'; FLOOR_BYTES / 2]);
        process.push(Channel::Stdout, &[b'y'; FLOOR_BYTES / 4]);
        let began = Instant::now();
        process.wait_for_room(FLOOR_BYTES / 2).await;
        assert!(
            began.elapsed() >= STALL,
            "time without output does not count"
        );
        assert!(matches!(reader.next(), Next::Detached));
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_something_now_and_then_is_waited_for() {
        let process = process();
        let reader = Reader::attach(&process, 0, false);
        for _ in 0..5 {
            process.wait_for_room(FLOOR_BYTES / 2).await;
            process.push(Channel::Stdout, &[b'x'; FLOOR_BYTES / 2]);
            tokio::time::advance(STALL - Duration::from_secs(1)).await;
            while let Next::Output(..) = reader.next() {}
        }
        assert!(matches!(reader.next(), Next::Wait));
        assert_eq!(process.dropped.get(), 0);
    }

    #[tokio::test]
    async fn output_nobody_got_is_counted_when_it_goes() {
        let process = process();
        process.push(Channel::Stdout, &[b'x'; FLOOR_BYTES]);
        process.push(Channel::Stdout, &[b'y'; 1000]);
        assert!((1000..1100).contains(&process.dropped.get()));
    }

    #[test]
    fn a_forgotten_process_gives_its_memory_back() {
        let budget = Rc::new(Budget::default());
        let mut birth = process();
        Rc::get_mut(&mut birth).unwrap().budget = budget.clone();
        birth.push(Channel::Stdout, b"some output");
        assert!(budget.0.get() > 0);
        drop(birth);
        assert_eq!(budget.0.get(), 0);
    }
}
