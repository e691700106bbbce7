//! One process, from its start until the agent forgets it.

use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::CString;
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
use super::reader::Readers;
use super::retention::Retention;
use super::ring::{Channel, Ring};
use crate::activity::Counters;
use crate::start::Log;

/// How long a reader may block a process without taking anything.
pub(super) const STALL: Duration = Duration::from_secs(30);

/// Output that every process may keep, however much the others keep, in bytes.
const FLOOR_BYTES: usize = 64 * 1024;

/// Output that all processes together may keep; above it each is limited to [`FLOOR_BYTES`].
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

/// The parts of a new process.
pub(super) struct NewProcess {
    pub(super) pid: u32,
    pub(super) supervisor: Pid,
    pub(super) tag: Option<String>,
    pub(super) config: ProcessConfig,
    pub(super) cwd: CString,
    pub(super) input: Option<Input>,
    pub(super) terminal: Option<OwnedFd>,
    pub(super) ring_bytes: usize,
    pub(super) budget: Rc<Budget>,
    pub(super) counters: Rc<Counters>,
    pub(super) log: Option<Log>,
    pub(super) retention: Option<Retention>,
}

/// A process, running or finished.
#[derive(Debug)]
pub(crate) struct Process {
    pub(super) pid: u32,
    /// Never reused, unlike the pid.
    pub(super) unique_id: String,
    pub(super) supervisor: Pid,
    pub(super) tag: Option<String>,
    pub(super) is_terminal: bool,
    config: RefCell<ProcessConfig>,
    /// Where it started.
    pub(super) cwd: CString,
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
    pub(super) retention: Option<Retention>,
    /// Bytes of output that were dropped before any reader got them.
    pub(super) dropped: Cell<u64>,
    /// Notified when output or the end arrived.
    pub(super) changed: Notify,
    /// Notified when a reader took output or detached.
    pub(super) reader_moved: Notify,
    /// Whether the command itself has ended; its last output may still arrive.
    has_exited: Cell<bool>,
    exited_notify: Notify,
    pub(super) timed_out: Cell<bool>,
    end: OnceCell<(EndEvent, Instant)>,
}

impl Process {
    pub(super) fn new(new: NewProcess) -> Self {
        let ring_bytes = ring_bytes(&new);
        Self {
            pid: new.pid,
            unique_id: unique_id(new.pid),
            supervisor: new.supervisor,
            tag: new.tag,
            is_terminal: new.terminal.is_some(),
            config: RefCell::new(new.config),
            cwd: new.cwd,
            input: tokio::sync::Mutex::new(new.input),
            input_state: InputState::default(),
            terminal: RefCell::new(new.terminal),
            ring: RefCell::new(Ring::new(ring_bytes)),
            has_output: Cell::new(true),
            readers: RefCell::default(),
            budget: new.budget,
            counters: new.counters,
            log: new.log,
            retention: new.retention,
            dropped: Cell::default(),
            changed: Notify::new(),
            reader_moved: Notify::new(),
            has_exited: Cell::default(),
            exited_notify: Notify::new(),
            timed_out: Cell::default(),
            end: OnceCell::new(),
        }
    }

    /// Its description for `List`.
    pub(super) fn info(&self) -> ProcessInfo {
        ProcessInfo {
            config: self.config.borrow().clone(),
            pid: self.pid,
            tag: self.tag.clone(),
        }
    }

    /// How and when it ended; `None` until all of its output is here.
    pub(super) fn end(&self) -> Option<&(EndEvent, Instant)> {
        self.end.get()
    }

    /// Whether it can still be listed and signalled.
    pub(crate) fn is_running(&self) -> bool {
        !self.has_exited.get()
    }

    /// Appends output, dropping the oldest when it has to.
    pub(super) fn push(&self, channel: Channel, bytes: &[u8]) {
        if let Some(log) = &self.log {
            return log.write(bytes);
        }
        let mut ring = self.ring.borrow_mut();
        self.readers.borrow_mut().mark_caught_up(ring.end());
        let before = ring.used();
        if let Some(retention) = &self.retention {
            retention.make_space(&mut ring, bytes.len(), self.budget.capacity());
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
    pub(super) async fn wait_for_space(&self, len: usize) {
        loop {
            let moved = self.reader_moved.notified();
            let Some((reader, since)) = self.blocking_reader(len) else {
                return;
            };
            tokio::select! {
                () = moved => {}
                () = tokio::time::sleep_until(since + STALL) => self.detach(reader),
            }
        }
    }

    fn blocking_reader(&self, len: usize) -> Option<(u64, Instant)> {
        let readers = self.readers.borrow();
        let slowest = readers.slowest()?;
        let ring = self.ring.borrow();
        let capacity = match &self.retention {
            // The other half holds output that the slowest reader got and may not have recorded yet.
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

    /// Notes that the command has ended.
    pub(super) fn set_exited(&self) {
        self.has_exited.set(true);
        self.exited_notify.notify_waiters();
    }

    /// Resolves when the command has ended.
    pub(crate) async fn wait_exited(&self) {
        let over = self.exited_notify.notified();
        if !self.has_exited.get() {
            over.await;
        }
    }

    /// Notes the end, after all output, and releases what only a running process needs.
    pub(super) fn finish(&self, end: EndEvent) {
        let _ = self.end.set((end, Instant::now()));
        self.config.take();
        self.terminal.take();
        if let Ok(mut input) = self.input.try_lock() {
            input.take();
        }
        let mut ring = self.ring.borrow_mut();
        if let Some(retention) = &self.retention {
            retention.note_end();
            if self.readers.borrow().is_empty() {
                let before = ring.used();
                retention.make_space(&mut ring, 0, FLOOR_BYTES);
                self.budget.change(before, ring.used());
            }
        }
        ring.shrink_to_fit();
        drop(ring);
        self.counters.touch();
        self.changed.notify_waiters();
    }

    /// Position of the oldest output that can still be read.
    pub(super) fn output_start(&self) -> u64 {
        let start = self.ring.borrow().start();
        let spooled = self.retention.as_ref().and_then(Retention::spool_start);
        spooled.map_or(start, |spooled| spooled.min(start))
    }

    /// Copies out what follows `position`, as [`Ring::read`] does.
    pub(super) fn read(&self, position: u64, max: usize) -> Option<(Channel, Bytes, u64)> {
        let ring = self.ring.borrow();
        if position < ring.start()
            && let Some(retention) = &self.retention
            && let Some(read) = retention.read(position, max)
        {
            return Some(read);
        }
        ring.read(position, max)
    }

    /// Notes that everything before `position` is recorded outside the sandbox.
    pub(super) fn note_recorded(&self, position: u64) {
        if let Some(retention) = &self.retention {
            retention.note_recorded(position);
        }
    }

    /// Whether its output and end are retained for a recorder outside.
    pub(super) fn is_retained(&self) -> bool {
        self.retention
            .as_ref()
            .is_some_and(|retention| !retention.is_released())
    }

    /// Drops the output of a finished process to free memory.
    pub(super) fn forget_output(&self) {
        self.has_output.set(false);
        let mut ring = self.ring.borrow_mut();
        let before = ring.used();
        ring.shrink(0);
        ring.shrink_to_fit();
        self.budget.change(before, ring.used());
        self.note_recorded(ring.end());
    }

    /// Calls `work` with the terminal, if it has one that is still open.
    pub(super) fn with_terminal<R>(&self, work: impl FnOnce(&OwnedFd) -> R) -> Option<R> {
        self.terminal.borrow().as_ref().map(work)
    }
}

/// A unique id from the pid and the start time: the kernel does not reuse a pid within a microsecond.
fn unique_id(pid: u32) -> String {
    let since_epoch = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    format!("{pid}-{:x}", since_epoch.as_micros())
}

/// How much output a process keeps in memory, in bytes; twice as much if output that was read must stay.
fn ring_bytes(new: &NewProcess) -> usize {
    let bytes = new.ring_bytes.max(FLOOR_BYTES);
    if new.retention.is_some() {
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
        Rc::new(Process::new(NewProcess {
            pid: 1,
            supervisor: Pid::INIT,
            tag: None,
            config: ProcessConfig::default(),
            cwd: CString::default(),
            input: None,
            terminal: None,
            ring_bytes: FLOOR_BYTES,
            budget: Rc::default(),
            counters: Rc::default(),
            log: None,
            retention: None,
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_stalls_is_detached() {
        let process = process();
        let reader = Reader::attach(&process, 0, false);
        tokio::time::advance(STALL * 10).await;
        process.push(Channel::Stdout, &[b'x'; FLOOR_BYTES / 2]);
        process.push(Channel::Stdout, &[b'y'; FLOOR_BYTES / 4]);
        let started = Instant::now();
        process.wait_for_space(FLOOR_BYTES / 2).await;
        assert!(
            started.elapsed() >= STALL,
            "time without output does not count"
        );
        assert!(matches!(reader.next(), Next::Detached));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_waited_for() {
        let process = process();
        let reader = Reader::attach(&process, 0, false);
        for _ in 0..5 {
            process.wait_for_space(FLOOR_BYTES / 2).await;
            process.push(Channel::Stdout, &[b'x'; FLOOR_BYTES / 2]);
            tokio::time::advance(STALL - Duration::from_secs(1)).await;
            while let Next::Output(..) = reader.next() {}
        }
        assert!(matches!(reader.next(), Next::Wait));
        assert_eq!(process.dropped.get(), 0);
    }

    #[tokio::test]
    async fn dropped_unread_output_is_counted() {
        let process = process();
        process.push(Channel::Stdout, &[b'x'; FLOOR_BYTES]);
        process.push(Channel::Stdout, &[b'y'; 1000]);
        assert!((1000..1100).contains(&process.dropped.get()));
    }

    #[test]
    fn a_forgotten_process_gives_its_memory_back() {
        let budget = Rc::new(Budget::default());
        let mut process = process();
        Rc::get_mut(&mut process).unwrap().budget = budget.clone();
        process.push(Channel::Stdout, b"some output");
        assert!(budget.0.get() > 0);
        drop(process);
        assert_eq!(budget.0.get(), 0);
    }
}
