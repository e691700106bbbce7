//! The output of commands, in files that outlive the server and the sandbox.
//!
//! ```text
//!  agent ─▶ recorder of the command ─▶ line_splitter ─▶ queue ─▶ writer thread ─▶ files ◀─ reader
//! ```
//!
//! Each sandbox has a folder below `<data>/logs`. A recorder hands output over and goes on; one thread writes it in batches, so that a
//! command pays next to nothing and no worker waits for a disk. A file says for each command up to which position its output is
//! in the log: after a crash the next server reads on from there at the agent, which keeps what is not recorded.
//!
//! Nothing is synced to the disk. A killed server loses nothing that was handed to the kernel, and after a power failure the
//! sandbox's processes are gone as well.

mod files;
mod line_splitter;
mod reader;
mod record;
mod retention;
mod writer;

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sandyard_agent_client::wire::event::Output;
use sandyard_core::SandboxId;
use tokio::sync::{Notify, Semaphore, watch};

use self::files::{Bounds, LogFiles};
use self::line_splitter::{LineSplitter, split_long};
pub(crate) use self::reader::{LogCursor, LogPage};
pub(crate) use self::record::OpenCommand;
use self::record::{Lines, Record, source_code};
use crate::request::LogSource;

/// Bytes of one sandbox that wait to be written; a recorder with more waits. Far less than what an agent keeps for a reader that died.
const MAX_QUEUED: usize = 128 << 10;
/// The same for lines that nobody can be made to wait for; more are lost.
const MAX_QUEUED_LINES: usize = 2 * MAX_QUEUED;
/// The same for all else.
const MAX_QUEUED_RECORDS: usize = 4 * MAX_QUEUED;
/// How long output is held up by a disk that takes nothing.
const FULL_DISK_PATIENCE: Duration = Duration::from_secs(2);
/// How long a reader waits for what is queued to be written.
const FLUSH_WITHIN: Duration = Duration::from_secs(2);
/// Files that are read at the same time: each is in memory meanwhile.
const READS_AT_ONCE: usize = 4;
/// Bytes of text in one answer.
const MAX_PAGE_BYTES: usize = 4 << 20;

/// The logs of all sandboxes. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct CommandLogs(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// None: nothing is kept.
    folder: Option<PathBuf>,
    bounds: Bounds,
    /// Names this server among those that share the folder.
    writer: String,
    state: Mutex<State>,
    /// Wakes the writer thread.
    work: Condvar,
    reads: Semaphore,
}

#[derive(Debug, Default)]
struct State {
    logs: HashMap<SandboxId, Log>,
    /// Logs with something queued.
    dirty: HashSet<SandboxId>,
    /// Whether somebody waits for the writer.
    is_urgent: bool,
    is_closed: bool,
}

/// What is in memory of one log.
#[derive(Debug)]
struct Log {
    queue: Vec<Record>,
    queued_bytes: usize,
    /// Lines that found no room.
    lost: u64,
    /// Somebody waited for room in vain since the last write.
    is_stuck: bool,
    /// Batches handed to the writer, and batches it is done with.
    taken: u64,
    commands: HashMap<u32, LineSplitter>,
    /// Rung when the queue was written.
    room: Arc<Notify>,
    /// Counts writes, for followers.
    written: watch::Sender<u64>,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            queue: Vec::new(),
            queued_bytes: 0,
            lost: 0,
            is_stuck: false,
            taken: 0,
            commands: HashMap::new(),
            room: Arc::default(),
            written: watch::channel(0).0,
        }
    }
}

/// What happens to output when the disk takes nothing for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenFull {
    /// It is not taken: the agent keeps it meanwhile.
    Refuse,
    /// It is lost, and counted: somebody waits for the command.
    Lose,
}

static WRITERS: AtomicU64 = AtomicU64::new(0);

impl CommandLogs {
    /// Keeps logs in a folder, each within a bound in bytes.
    pub(crate) fn open(folder: Option<PathBuf>, max_bytes: u64, node: &str) -> io::Result<Self> {
        let number = WRITERS.fetch_add(1, Ordering::Relaxed);
        let logs = Self(Arc::new(Inner {
            folder,
            bounds: Bounds::of_total(max_bytes),
            writer: format!("{node}.{number}"),
            state: Mutex::default(),
            work: Condvar::new(),
            reads: Semaphore::new(READS_AT_ONCE),
        }));
        if logs.0.folder.is_some() {
            writer::spawn(&logs.0)?;
        }
        Ok(logs)
    }

    fn folder(&self, id: &SandboxId) -> Option<PathBuf> {
        Some(self.0.folder.as_deref()?.join(id.as_str()))
    }

    /// Notes that a command runs. Output of it begins at [`OpenCommand::resume`].
    pub(crate) fn open_command(&self, id: &SandboxId, command: OpenCommand) {
        let record = Record::Opened(command.clone());
        let mut state = self.0.state();
        let log = state.logs.entry(id.clone()).or_default();
        let at_ms = command.began_ms;
        let splitter = LineSplitter::new(command);
        let replaced = log.commands.insert(splitter.command.pid, splitter);
        // Process ids begin anew when a sandbox does: the command that had this one has ended.
        let last = replaced.map(|mut old| old.finish(at_ms));
        let last = last.into_iter().flatten().map(Record::Lines);
        self.0.queue(&mut state, id, last.chain([record]));
    }

    /// Goes on with a command whose output was read by somebody else, or over another connection. False: another command has its
    /// process id by now.
    pub(crate) fn resume_command(
        &self,
        id: &SandboxId,
        command: OpenCommand,
        position: u64,
    ) -> bool {
        let mut state = self.0.state();
        let log = state.logs.entry(id.clone()).or_default();
        if let Some(known) = log.commands.get(&command.pid)
            && known.command.id != command.id
        {
            return false;
        }
        let mut splitter = LineSplitter::new(command);
        splitter.seek(position);
        log.commands.insert(splitter.command.pid, splitter);
        true
    }

    /// A running command as it is known here.
    pub(crate) fn running_command(&self, id: &SandboxId, pid: u32) -> Option<OpenCommand> {
        let state = self.0.state();
        let splitter = state.logs.get(id)?.commands.get(&pid)?;
        Some(splitter.command.clone())
    }

    /// Completes the last line of a command that has ended; returns its id, and whether the log knows it. Does nothing if the process
    /// id belongs to another command than the `expected` one.
    pub(crate) fn finish_command(
        &self,
        id: &SandboxId,
        pid: u32,
        expected: Option<&str>,
        at_ms: i64,
    ) -> Option<(String, bool)> {
        let mut state = self.0.state();
        let log = state.logs.get_mut(id)?;
        log.commands.get(&pid)?.is_of(expected).then_some(())?;
        let mut splitter = log.commands.remove(&pid)?;
        let command = splitter.command.id.clone();
        let last = splitter.finish(at_ms);
        // One that began and ended unheard since the last write leaves no trace.
        let is_of_command = |record: &Record| match record {
            Record::Opened(opened) => opened.id == command,
            Record::Lines(lines) => lines.command == command,
            Record::Closed(_) => false,
        };
        let mut own = log.queue.iter().filter(|record| is_of_command(record));
        let is_unheard = last.is_empty()
            && matches!(own.next(), Some(Record::Opened(_)))
            && own.next().is_none();
        if is_unheard {
            let opened = log.queue.extract_if(.., |record| is_of_command(record));
            log.queued_bytes -= opened.map(|record| queued_size(&record)).sum::<usize>();
            return Some((command, false));
        }
        let records = last.into_iter().map(Record::Lines);
        self.0.queue(&mut state, id, records);
        Some((command, true))
    }

    /// Notes that the end of a command is in the history and that its agent no longer keeps it. Not earlier: what is closed here
    /// and kept there would be recorded again.
    pub(crate) fn close_command(&self, id: &SandboxId, command: String) {
        let mut state = self.0.state();
        state.logs.entry(id.clone()).or_default();
        self.0.queue(&mut state, id, [Record::Closed(command)]);
    }

    /// Adds a piece of a command's output, unless the process id belongs to another command than the `expected` one. False: there
    /// is no room, and the piece was refused.
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
        let mut state = self.0.state();
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

    /// Waits a little for room for a command's output. Not for a command that is not logged, and once for all pieces that come until the next write.
    async fn has_room_soon(&self, id: &SandboxId, pid: u32) -> bool {
        let is_full = |log: &Log| log.queued_bytes > MAX_QUEUED;
        {
            let state = self.0.state();
            let Some(log) = state.logs.get(id) else {
                return true;
            };
            let command = log.commands.get(&pid).map(|splitter| &splitter.command);
            if !is_full(log) || !command.is_some_and(|command| command.is_logged) {
                return true;
            }
            if log.is_stuck {
                return false;
            }
        }
        let room = self.wait_for_room(id);
        if tokio::time::timeout(FULL_DISK_PATIENCE, room).await.is_ok() {
            return true;
        }
        let mut state = self.0.state();
        match state.logs.get_mut(id) {
            Some(log) if is_full(log) => {
                log.is_stuck = true;
                false
            }
            _ => true,
        }
    }

    /// Adds a line that no command wrote.
    pub(crate) fn add_line(&self, id: &SandboxId, at_ms: i64, source: LogSource, text: &str) {
        let mut state = self.0.state();
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

    /// Waits until more can be queued.
    pub(crate) async fn wait_for_room(&self, id: &SandboxId) {
        loop {
            let room = {
                let mut state = self.0.state();
                match state.logs.get(id) {
                    Some(log) if log.queued_bytes > MAX_QUEUED => {
                        let room = log.room.clone();
                        state.is_urgent = true;
                        self.0.work.notify_one();
                        room.notified_owned()
                    }
                    _ => return,
                }
            };
            room.await;
        }
    }

    /// Waits until what is queued of a sandbox is in its files, within bounds.
    pub(crate) async fn flush(&self, id: &SandboxId) {
        let written = {
            let mut state = self.0.state();
            let Some(log) = state.logs.get(id) else {
                return;
            };
            if log.queue.is_empty() && log.taken == *log.written.borrow() {
                return;
            }
            let target = log.taken + u64::from(!log.queue.is_empty());
            let mut written = log.written.subscribe();
            state.is_urgent = true;
            self.0.work.notify_one();
            async move {
                // An error means that nobody writes any more.
                let _ = written.wait_for(|count| *count >= target).await;
            }
        };
        let _ = tokio::time::timeout(FLUSH_WITHIN, written).await;
    }

    /// Hears of every write to a sandbox's log; an error means that the sandbox is gone.
    pub(crate) fn subscribe(&self, id: &SandboxId) -> watch::Receiver<u64> {
        let mut state = self.0.state();
        state
            .logs
            .entry(id.clone())
            .or_default()
            .written
            .subscribe()
    }

    /// Sandboxes of which something is in memory.
    pub(crate) fn ids(&self) -> Vec<SandboxId> {
        self.0.state().logs.keys().cloned().collect()
    }

    /// Lets go of what is in memory of a sandbox; its files stay. Followers hear the end.
    pub(crate) async fn forget(&self, id: &SandboxId) {
        self.flush(id).await;
        self.drop_memory(id);
    }

    fn drop_memory(&self, id: &SandboxId) {
        if let Some(log) = self.0.state().logs.remove(id) {
            // Nobody writes this queue any more: waiting for room there is over.
            log.room.notify_waiters();
        }
    }

    /// The commands whose end is not recorded, as the files have it.
    pub(crate) async fn open_commands(&self, id: &SandboxId) -> io::Result<Vec<OpenCommand>> {
        self.flush(id).await;
        let (Some(folder), inner) = (self.folder(id), self.0.clone()) else {
            return Ok(Vec::new());
        };
        let work = move || {
            if !folder.exists() {
                return Ok(Vec::new());
            }
            // Under a name of its own: the writer thread then reads the end anew.
            LogFiles::open(&folder, inner.bounds)?.open_commands("reader")
        };
        blocking(&self.0.reads, work).await
    }

    /// Reads the newest lines; the cursor goes on after them.
    pub(crate) async fn tail(
        &self,
        id: &SandboxId,
        limit: usize,
    ) -> io::Result<(LogPage, LogCursor)> {
        self.flush(id).await;
        let Some(folder) = self.folder(id) else {
            return Ok((LogPage::default(), LogCursor::after(0)));
        };
        let work = move || LogCursor::tail(&folder, limit, MAX_PAGE_BYTES);
        blocking(&self.0.reads, work).await
    }

    /// Reads what follows a cursor.
    pub(crate) async fn read(
        &self,
        id: &SandboxId,
        mut cursor: LogCursor,
        limit: usize,
    ) -> io::Result<(LogPage, LogCursor)> {
        let Some(folder) = self.folder(id) else {
            return Ok((LogPage::default(), cursor));
        };
        let work = move || {
            let page = cursor.read(&folder, limit, MAX_PAGE_BYTES)?;
            Ok((page, cursor))
        };
        blocking(&self.0.reads, work).await
    }

    /// Sandboxes that have a folder here.
    pub(crate) async fn folders(&self) -> io::Result<Vec<SandboxId>> {
        let Some(folder) = self.0.folder.clone() else {
            return Ok(Vec::new());
        };
        blocking(&self.0.reads, move || retention::folders(&folder)).await
    }

    /// Removes the files of a sandbox.
    pub(crate) async fn remove(&self, id: &SandboxId) -> io::Result<()> {
        self.drop_memory(id);
        let Some(folder) = self.folder(id) else {
            return Ok(());
        };
        blocking(&self.0.reads, move || retention::remove(&folder)).await
    }

    /// Removes the oldest files of all sandboxes until the rest is within a bound.
    pub(crate) async fn keep_within(&self, max_bytes: u64) -> io::Result<()> {
        let Some(folder) = self.0.folder.clone() else {
            return Ok(());
        };
        blocking(&self.0.reads, move || {
            retention::keep_within(&folder, max_bytes)
        })
        .await
    }

    /// Writes what is queued and ends the writer thread.
    pub(crate) async fn close(&self) {
        for id in self.ids() {
            self.flush(&id).await;
        }
        self.0.state().is_closed = true;
        self.0.work.notify_one();
    }
}

async fn blocking<T: Send + 'static>(
    turns: &Semaphore,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let _turn = turns.acquire().await.map_err(io::Error::other)?;
    tokio::task::spawn_blocking(work)
        .await
        .map_err(io::Error::other)?
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands records to the writer, within bounds also for those that nobody waits for. Lines that find no room are counted; a command
    /// whose opening or end is missing in the log is known to its agent or to the history.
    fn queue(&self, state: &mut State, id: &SandboxId, records: impl IntoIterator<Item = Record>) {
        if self.folder.is_none() {
            return;
        }
        let Some(log) = state.logs.get_mut(id) else {
            return;
        };
        for record in records {
            match &record {
                Record::Lines(lines) if log.queued_bytes > MAX_QUEUED_LINES => {
                    log.lost += u64::from(lines.count);
                    continue;
                }
                _ if log.queued_bytes > MAX_QUEUED_RECORDS => continue,
                _ => {}
            }
            log.queued_bytes += queued_size(&record);
            log.queue.push(record);
        }
        if state.dirty.insert(id.clone()) {
            self.work.notify_one();
        }
    }
}

fn queued_size(record: &Record) -> usize {
    const OVERHEAD: usize = 128;
    OVERHEAD
        + match record {
            Record::Lines(lines) => lines.text.len(),
            Record::Opened(_) | Record::Closed(_) => 0,
        }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn output_is_there_after_a_restart_and_open_commands_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let id: SandboxId = "abc".parse().unwrap();
        let open = || CommandLogs::open(Some(folder.path().to_owned()), 1 << 20, "node").unwrap();
        let logs = open();
        let command = OpenCommand {
            id: "node/1".to_owned(),
            pid: 7,
            is_logged: true,
            ..OpenCommand::default()
        };
        logs.open_command(&id, command.clone());
        let quiet = OpenCommand {
            id: "node/2".to_owned(),
            pid: 8,
            ..command.clone()
        };
        logs.open_command(&id, quiet);
        for piece in ["first\nsec", "ond\nthi"] {
            let output = Output::Stdout(piece.into());
            logs.add_output(&id, 7, None, &output, 5, WhenFull::Lose)
                .await;
        }
        assert_eq!(
            logs.finish_command(&id, 8, None, 6),
            Some(("node/2".to_owned(), false))
        );
        // As a crash leaves it: what was handed over is written, nothing is closed.
        logs.flush(&id).await;
        let logs = open();
        let texts = |page: LogPage| -> Vec<String> {
            page.entries.into_iter().map(|entry| entry.text).collect()
        };
        let (page, cursor) = logs.tail(&id, 10).await.unwrap();
        assert_eq!(texts(page), ["first", "second"]);
        let known = logs.open_commands(&id).await.unwrap();
        assert_eq!(known.len(), 1);
        assert_eq!((known[0].recorded[0], known[0].resume), (13, 13));
        assert!(logs.resume_command(&id, known[0].clone(), 13));
        let output = Output::Stdout("third\nend".into());
        logs.add_output(&id, 7, None, &output, 7, WhenFull::Refuse)
            .await;
        assert_eq!(
            logs.finish_command(&id, 7, None, 8),
            Some(("node/1".to_owned(), true))
        );
        logs.close_command(&id, "node/1".to_owned());
        logs.flush(&id).await;
        let (page, _) = logs.read(&id, cursor, 10).await.unwrap();
        assert_eq!(texts(page), ["third", "end"]);
        assert!(logs.open_commands(&id).await.unwrap().is_empty());
    }

    fn command(id: &str, pid: u32) -> OpenCommand {
        OpenCommand {
            id: id.to_owned(),
            pid,
            is_logged: true,
            ..OpenCommand::default()
        }
    }

    #[tokio::test]
    async fn a_new_command_with_the_process_id_of_an_old_one_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let id: SandboxId = "abc".parse().unwrap();
        let logs = CommandLogs::open(Some(folder.path().to_owned()), 1 << 20, "node").unwrap();
        let add = async |expected, text: &str| {
            let output = Output::Stdout(text.as_bytes().to_vec().into());
            logs.add_output(&id, 7, expected, &output, 5, WhenFull::Lose)
                .await;
        };
        logs.open_command(&id, command("node/1", 7));
        add(Some("node/1"), "old").await;
        logs.open_command(&id, command("node/2", 7));
        assert_eq!(logs.finish_command(&id, 7, Some("node/1"), 6), None);
        assert!(!logs.resume_command(&id, command("node/1", 7), 0));
        add(Some("node/1"), "late\n").await;
        add(Some("node/2"), "new\n").await;
        let ended = logs.finish_command(&id, 7, Some("node/2"), 6);
        assert_eq!(ended, Some(("node/2".to_owned(), true)));
        let (page, _) = logs.tail(&id, 10).await.unwrap();
        let texts: Vec<&str> = page.entries.iter().map(|entry| &*entry.text).collect();
        assert_eq!(texts, ["old", "new"]);
    }

    /// Logs on a disk that takes nothing: their folder is a file. The queue of the sandbox is full.
    fn full_logs(folder: &std::path::Path, id: &SandboxId) -> CommandLogs {
        let blocked = folder.join("logs");
        std::fs::write(&blocked, "").unwrap();
        let logs = CommandLogs::open(Some(blocked), 1 << 20, "node").unwrap();
        while logs
            .0
            .state()
            .logs
            .get(id)
            .map_or(0, |log| log.queued_bytes)
            <= MAX_QUEUED
        {
            logs.add_line(id, 1, LogSource::Gateway, &"x".repeat(4000));
        }
        logs
    }

    #[tokio::test]
    async fn whoever_waits_for_room_goes_on_when_the_log_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let id: SandboxId = "abc".parse().unwrap();
        let logs = full_logs(folder.path(), &id);
        let waiting = logs.wait_for_room(&id);
        tokio::pin!(waiting);
        assert!(futures_util::poll!(&mut waiting).is_pending());
        // The files are not there to be removed; what is in memory goes.
        let _ = logs.remove(&id).await;
        let waited = tokio::time::timeout(Duration::from_secs(60), waiting).await;
        waited.unwrap();
    }

    #[tokio::test]
    async fn a_full_disk_holds_a_command_up_once_and_one_without_a_log_never() {
        let folder = tempfile::tempdir().unwrap();
        let id: SandboxId = "abc".parse().unwrap();
        let logs = full_logs(folder.path(), &id);
        let quiet = OpenCommand {
            is_logged: false,
            ..command("node/2", 8)
        };
        logs.open_command(&id, command("node/1", 7));
        logs.open_command(&id, quiet);
        let output = Output::Stdout("line\n".into());
        let add = |pid, when_full| logs.add_output(&id, pid, None, &output, 5, when_full);
        assert_eq!(add(8, WhenFull::Lose).now_or_never(), Some(true));
        assert_eq!(add(7, WhenFull::Lose).now_or_never(), None);
        assert!(add(7, WhenFull::Lose).await);
        assert_eq!(add(7, WhenFull::Lose).now_or_never(), Some(true));
        assert_eq!(add(7, WhenFull::Refuse).now_or_never(), Some(false));
        assert_eq!(logs.0.state().logs[&id].lost, 2);
        // The disk takes something again: nobody is refused.
        std::fs::remove_file(folder.path().join("logs")).unwrap();
        logs.wait_for_room(&id).await;
        assert!(add(7, WhenFull::Refuse).await);
        let (page, _) = logs.tail(&id, 2).await.unwrap();
        let texts: Vec<&str> = page.entries.iter().map(|entry| &*entry.text).collect();
        assert!(
            texts[0].starts_with("2 lines of output were lost"),
            "{texts:?}"
        );
        assert_eq!(texts[1], "line");
    }

    #[tokio::test]
    async fn what_waits_for_a_full_disk_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let id: SandboxId = "abc".parse().unwrap();
        let logs = full_logs(folder.path(), &id);
        let full = logs.0.state().logs[&id].queued_bytes;
        for _ in 0..100 {
            logs.open_command(&id, command("node/0", 1));
            logs.finish_command(&id, 1, None, 1);
        }
        // The writer may have had one of them in hand.
        let queued = || logs.0.state().logs[&id].queued_bytes;
        assert!(queued() < full + 5000, "{}", queued());
        for _ in 0..1000 {
            logs.add_line(&id, 1, LogSource::Gateway, &"x".repeat(1000));
        }
        assert!(queued() < MAX_QUEUED_LINES + 2000, "{}", queued());
        let lost = logs.0.state().logs[&id].lost;
        assert!((1..1000).contains(&lost), "{lost}");
        for number in 0..10_000 {
            logs.open_command(&id, command(&format!("node/{number}"), number));
            logs.close_command(&id, format!("node/{number}"));
        }
        assert!(queued() < MAX_QUEUED_RECORDS + 2000, "{}", queued());
    }

    #[tokio::test]
    async fn followers_hear_of_writes_and_of_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let id: SandboxId = "abc".parse().unwrap();
        let logs = CommandLogs::open(Some(folder.path().to_owned()), 1 << 20, "node").unwrap();
        let mut follower = logs.subscribe(&id);
        logs.add_line(&id, 1, LogSource::Gateway, "denied");
        follower.changed().await.unwrap();
        let (page, _) = logs.tail(&id, 10).await.unwrap();
        assert_eq!(page.entries[0].text, "denied");
        logs.forget(&id).await;
        assert!(follower.changed().await.is_err());
        logs.remove(&id).await.unwrap();
        assert!(logs.folders().await.unwrap().is_empty());
    }
}
