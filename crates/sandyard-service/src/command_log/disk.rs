//! Reads and removes the files of command logs.

use std::io;

use sandyard_core::SandboxId;
use tokio::sync::Semaphore;

use super::files::LogFiles;
use super::logs::CommandLogs;
use super::reader::{LogCursor, LogPage};
use super::record::OpenCommand;
use super::retention;

/// Most bytes of text in one page.
const MAX_PAGE_BYTES: usize = 4 << 20;

impl CommandLogs {
    /// The commands whose end is not recorded, from the files.
    pub(crate) async fn open_commands(&self, id: &SandboxId) -> io::Result<Vec<OpenCommand>> {
        self.flush(id).await;
        let (Some(folder), bounds) = (self.0.folder_of(id), self.0.bounds) else {
            return Ok(Vec::new());
        };
        let work = move || {
            if !folder.exists() {
                return Ok(Vec::new());
            }
            // Under another name than the writer thread, which then reads the end of the log again.
            LogFiles::open(&folder, bounds)?.open_commands("reader")
        };
        blocking(&self.0.read_slots, work).await
    }

    /// Reads the newest lines. The cursor continues after them.
    pub(crate) async fn tail(
        &self,
        id: &SandboxId,
        limit: usize,
    ) -> io::Result<(LogPage, LogCursor)> {
        self.flush(id).await;
        let Some(folder) = self.0.folder_of(id) else {
            return Ok((LogPage::default(), LogCursor::after(0)));
        };
        let work = move || LogCursor::tail(&folder, limit, MAX_PAGE_BYTES);
        blocking(&self.0.read_slots, work).await
    }

    /// Reads the lines after a cursor.
    pub(crate) async fn read(
        &self,
        id: &SandboxId,
        mut cursor: LogCursor,
        limit: usize,
    ) -> io::Result<(LogPage, LogCursor)> {
        let Some(folder) = self.0.folder_of(id) else {
            return Ok((LogPage::default(), cursor));
        };
        let work = move || {
            let page = cursor.read(&folder, limit, MAX_PAGE_BYTES)?;
            Ok((page, cursor))
        };
        blocking(&self.0.read_slots, work).await
    }

    /// The sandboxes that have a log folder.
    pub(crate) async fn folders(&self) -> io::Result<Vec<SandboxId>> {
        let Some(folder) = self.0.folder.clone() else {
            return Ok(Vec::new());
        };
        blocking(&self.0.read_slots, move || retention::folders(&folder)).await
    }

    /// Removes the log of a sandbox.
    pub(crate) async fn remove(&self, id: &SandboxId) -> io::Result<()> {
        self.drop_memory(id);
        let Some(folder) = self.0.folder_of(id) else {
            return Ok(());
        };
        blocking(&self.0.read_slots, move || retention::remove(&folder)).await
    }

    /// Removes the oldest files of all sandboxes until the rest has at most `max_bytes`.
    pub(crate) async fn keep_within(&self, max_bytes: u64) -> io::Result<()> {
        let Some(folder) = self.0.folder.clone() else {
            return Ok(());
        };
        let work = move || retention::keep_within(&folder, max_bytes);
        blocking(&self.0.read_slots, work).await
    }
}

/// Runs file operations on a thread that may block, a few at a time.
async fn blocking<T: Send + 'static>(
    slots: &Semaphore,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let _slot = slots.acquire().await.map_err(io::Error::other)?;
    tokio::task::spawn_blocking(work)
        .await
        .map_err(io::Error::other)?
}
