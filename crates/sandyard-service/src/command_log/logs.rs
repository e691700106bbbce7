//! The command logs of all sandboxes.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sandyard_agent_client::wire::event::Output;
use sandyard_core::SandboxId;
use tokio::sync::watch;

use super::files::Bounds;
use super::line_splitter::{LineSplitter, split_long};
use super::queue::{Shared, queued_size};
use super::record::{Lines, OpenCommand, Record, source_code};
use super::writer;
use crate::request::LogSource;

/// How long output waits for a disk that accepts nothing.
const FULL_DISK_WAIT: Duration = Duration::from_secs(2);
/// How long a reader waits for queued records to be written.
const FLUSH_WITHIN: Duration = Duration::from_secs(2);

/// The logs of all sandboxes. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct CommandLogs(pub(super) Arc<Shared>);

/// What happens to output while the disk accepts nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenFull {
    /// The log refuses it; the agent keeps it meanwhile.
    Refuse,
    /// It is lost, and counted, because a client waits for the command.
    Lose,
}

impl CommandLogs {
    /// Opens the logs in a folder. Each log has at most `max_bytes`.
    pub(crate) fn open(folder: Option<PathBuf>, max_bytes: u64, node: &str) -> io::Result<Self> {
        static WRITERS: AtomicU64 = AtomicU64::new(0);
        let number = WRITERS.fetch_add(1, Ordering::Relaxed);
        let bounds = Bounds::of_total(max_bytes);
        let logs = Self(Shared::new(folder, bounds, format!("{node}.{number}")));
        if logs.0.folder.is_some() {
            writer::spawn(&logs.0)?;
        }
        Ok(logs)
    }

    /// Records that a command runs. Its output begins at [`OpenCommand::resume`].
    pub(crate) fn open_command(&self, id: &SandboxId, command: OpenCommand) {
        let record = Record::CommandOpened(command.clone());
        let mut state = self.0.state.lock();
        let log = state.logs.entry(id.clone()).or_default();
        let at_ms = command.began_ms;
        let splitter = LineSplitter::new(command);
        let replaced = log.commands.insert(splitter.command.pid, splitter);
        // Process ids start again when a sandbox does: the command that had this one has ended.
        let last = replaced.map(|mut old| old.finish(at_ms));
        let last = last.into_iter().flatten().map(Record::Lines);
        self.0.queue(&mut state, id, last.chain([record]));
    }

    /// Continues with a command whose output came from another reader, or over another connection. Returns false if another command
    /// has its process id now.
    pub(crate) fn resume_command(
        &self,
        id: &SandboxId,
        command: OpenCommand,
        position: u64,
    ) -> bool {
        let mut state = self.0.state.lock();
        let log = state.logs.entry(id.clone()).or_default();
        if let Some(running) = log.commands.get(&command.pid)
            && running.command.id != command.id
        {
            return false;
        }
        let mut splitter = LineSplitter::new(command);
        splitter.seek(position);
        log.commands.insert(splitter.command.pid, splitter);
        true
    }

    /// The running command with a process id.
    pub(crate) fn running_command(&self, id: &SandboxId, pid: u32) -> Option<OpenCommand> {
        let state = self.0.state.lock();
        let splitter = state.logs.get(id)?.commands.get(&pid)?;
        Some(splitter.command.clone())
    }

    /// Completes the last line of a command that has ended. Returns its id, and whether the log has it. Does nothing if the process id
    /// belongs to another command than the `expected` one.
    pub(crate) fn finish_command(
        &self,
        id: &SandboxId,
        pid: u32,
        expected: Option<&str>,
        at_ms: i64,
    ) -> Option<(String, bool)> {
        let mut state = self.0.state.lock();
        let log = state.logs.get_mut(id)?;
        log.commands.get(&pid)?.is_of(expected).then_some(())?;
        let mut splitter = log.commands.remove(&pid)?;
        let command = splitter.command.id.clone();
        let last = splitter.finish(at_ms);
        // A command that started and ended without output since the last write leaves no trace.
        let is_of_command = |record: &Record| match record {
            Record::CommandOpened(opened) => opened.id == command,
            Record::Lines(lines) => lines.command == command,
            Record::CommandClosed(_) => false,
        };
        let mut own = log.queue.iter().filter(|record| is_of_command(record));
        let is_silent = last.is_empty()
            && matches!(own.next(), Some(Record::CommandOpened(_)))
            && own.next().is_none();
        if is_silent {
            let opened = log.queue.extract_if(.., |record| is_of_command(record));
            log.queued_bytes -= opened.map(|record| queued_size(&record)).sum::<usize>();
            return Some((command, false));
        }
        let records = last.into_iter().map(Record::Lines);
        self.0.queue(&mut state, id, records);
        Some((command, true))
    }

    /// Records that the end of a command is in the history and that its agent has forgotten it. Not earlier: a command that is closed
    /// here and kept by its agent would be recorded again.
    pub(crate) fn close_command(&self, id: &SandboxId, command: String) {
        let mut state = self.0.state.lock();
        state.logs.entry(id.clone()).or_default();
        self.0
            .queue(&mut state, id, [Record::CommandClosed(command)]);
    }

    /// Adds output of a command, unless the process id belongs to another command than the `expected` one. Returns false if the queue is
    /// full and the output was refused.
    pub(crate) async fn add_output(
        &self,
        id: &SandboxId,
        pid: u32,
        expected: Option<&str>,
        output: &Output,
        at_ms: i64,
        when_full: WhenFull,
    ) -> bool {
        let stream = usize::from(matches!(output, Output::Stderr(_)));
        let has_room = self.has_room_soon(id, pid).await;
        if !has_room && when_full == WhenFull::Refuse {
            return false;
        }
        let mut state = self.0.state.lock();
        let Some(log) = state.logs.get_mut(id) else {
            return true;
        };
        let Some(splitter) = log.commands.get_mut(&pid) else {
            return true;
        };
        if !splitter.command.is_logged || !splitter.is_of(expected) {
            return true;
        }
        match splitter.push(stream, output.bytes(), at_ms) {
            Some(lines) if has_room => self.0.queue(&mut state, id, [Record::Lines(lines)]),
            Some(lines) => log.lost += u64::from(lines.count),
            None => {}
        }
        true
    }

    /// Waits a little for room for a command's output: not for a command that is not logged, and only once until the next write.
    async fn has_room_soon(&self, id: &SandboxId, pid: u32) -> bool {
        {
            let state = self.0.state.lock();
            let Some(log) = state.logs.get(id) else {
                return true;
            };
            let command = log.commands.get(&pid).map(|splitter| &splitter.command);
            if !log.is_full() || !command.is_some_and(|command| command.is_logged) {
                return true;
            }
            if log.is_stuck {
                return false;
            }
        }
        let free_space = self.wait_for_room(id);
        if tokio::time::timeout(FULL_DISK_WAIT, free_space)
            .await
            .is_ok()
        {
            return true;
        }
        let mut state = self.0.state.lock();
        match state.logs.get_mut(id) {
            Some(log) if log.is_full() => {
                log.is_stuck = true;
                false
            }
            _ => true,
        }
    }

    /// Adds a line that no command wrote.
    pub(crate) fn add_line(&self, id: &SandboxId, at_ms: i64, source: LogSource, text: &str) {
        let mut state = self.0.state.lock();
        state.logs.entry(id.clone()).or_default();
        let text = split_long(format!("{}\n", text.replace('\n', " ")).into_bytes());
        let lines = Lines {
            at_ms,
            source: source_code(source),
            count: text.iter().filter(|byte| **byte == b'\n').count() as u32,
            text,
            ..Lines::default()
        };
        self.0.queue(&mut state, id, [Record::Lines(lines)]);
    }

    /// Waits until the queue of a sandbox has room.
    pub(crate) async fn wait_for_room(&self, id: &SandboxId) {
        loop {
            let notified = {
                let mut state = self.0.state.lock();
                let Some(log) = state.logs.get(id).filter(|log| log.is_full()) else {
                    return;
                };
                let space_freed = log.space_freed.clone();
                self.0.hurry(&mut state);
                space_freed.notified_owned()
            };
            notified.await;
        }
    }

    /// Waits, within a time limit, until the queued records of a sandbox are in its files.
    pub(crate) async fn flush(&self, id: &SandboxId) {
        let written = {
            let mut state = self.0.state.lock();
            let Some(log) = state.logs.get(id) else {
                return;
            };
            if log.queue.is_empty() && log.batches_taken == *log.last_written_batch.borrow() {
                return;
            }
            let target = log.batches_taken + u64::from(!log.queue.is_empty());
            let mut written = log.last_written_batch.subscribe();
            self.0.hurry(&mut state);
            async move {
                // An error means that the log is gone.
                let _ = written.wait_for(|count| *count >= target).await;
            }
        };
        let _ = tokio::time::timeout(FLUSH_WITHIN, written).await;
    }

    /// Notifies of every write to a sandbox's log. An error means that the sandbox is gone.
    pub(crate) fn subscribe(&self, id: &SandboxId) -> watch::Receiver<u64> {
        let mut state = self.0.state.lock();
        let log = state.logs.entry(id.clone()).or_default();
        log.last_written_batch.subscribe()
    }

    /// The sandboxes whose logs are in memory.
    pub(crate) fn ids(&self) -> Vec<SandboxId> {
        self.0.state.lock().logs.keys().cloned().collect()
    }

    /// Writes what is queued of a sandbox and frees its memory. Its files stay; its followers end.
    pub(crate) async fn forget(&self, id: &SandboxId) {
        self.flush(id).await;
        self.drop_memory(id);
    }

    pub(super) fn drop_memory(&self, id: &SandboxId) {
        if let Some(log) = self.0.state.lock().logs.remove(id) {
            // This queue is never written, so nothing is gained by waiting for room.
            log.space_freed.notify_waiters();
        }
    }

    /// Writes all queued records and ends the writer thread.
    pub(crate) async fn close(&self) {
        for id in self.ids() {
            self.flush(&id).await;
        }
        self.0.state.lock().is_closed = true;
        self.0.work.notify_one();
    }
}
