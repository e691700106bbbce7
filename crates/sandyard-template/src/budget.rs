//! Limits of an import or snapshot, its progress, and what was left out.

use std::fmt;
use std::ops::ControlFlow;

use crate::error::{Result, TemplateError};

/// Most memory spent on names that must be remembered while a tree is built (hard links, directories to finish).
const MAX_REMEMBERED_BYTES: u64 = 256 << 20;
/// Data is reported and checked at least this often.
const STEP_BYTES: u64 = 4 << 20;

/// Bounds of one import or snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Files, directories, links and all else together.
    pub entries: u64,
    /// Bytes of file data, decompressed.
    pub bytes: u64,
}

impl Default for Limits {
    /// Four million entries and 128 GiB: more than any normal root has.
    fn default() -> Self {
        Self {
            entries: 4_000_000,
            bytes: 128 << 30,
        }
    }
}

/// The progress of the work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Entries so far.
    pub entries: u64,
    /// Bytes of file data so far.
    pub bytes: u64,
}

/// What was copied and what was left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Entries and bytes written.
    pub done: Progress,
    /// Device nodes skipped: sandboxes get their own `/dev`.
    pub devices: u64,
    /// Sockets skipped: they mean nothing without their process.
    pub sockets: u64,
    /// Entries of a kind that no file system has.
    pub unknown: u64,
    /// Directories left empty because another file system is mounted there.
    pub mounts: u64,
    /// Owners above 65535 that became `nobody`: no sandbox has such ids.
    pub owners: u64,
    /// Extended attributes left out.
    pub xattrs: u64,
}

/// Called with the progress; breaking stops the work.
pub(crate) type OnProgress<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

/// Counts against [`Limits`] while work goes on.
pub(crate) struct Budget<'a> {
    limits: Limits,
    remembered: u64,
    unreported: u64,
    on_progress: OnProgress<'a>,
    pub(crate) counts: Counts,
}

impl fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("limits", &self.limits)
            .field("tally", &self.counts)
            .finish_non_exhaustive()
    }
}

impl<'a> Budget<'a> {
    pub(crate) fn new(limits: Limits, on_progress: OnProgress<'a>) -> Self {
        Self {
            limits,
            remembered: 0,
            unreported: 0,
            on_progress,
            counts: Counts::default(),
        }
    }

    /// Counts one more entry.
    pub(crate) fn entry(&mut self) -> Result<()> {
        self.counts.done.entries += 1;
        if self.counts.done.entries > self.limits.entries {
            return Err(TemplateError::LimitExceeded {
                what: "entries",
                limit: self.limits.entries,
            });
        }
        if self.counts.done.entries.is_multiple_of(256) {
            self.report()?;
        }
        Ok(())
    }

    /// Counts data, before it is written where that is known.
    pub(crate) fn bytes(&mut self, count: u64) -> Result<()> {
        self.counts.done.bytes = self.counts.done.bytes.saturating_add(count);
        if self.counts.done.bytes > self.limits.bytes {
            return Err(TemplateError::LimitExceeded {
                what: "bytes of data",
                limit: self.limits.bytes,
            });
        }
        self.unreported = self.unreported.saturating_add(count);
        if self.unreported >= STEP_BYTES {
            self.unreported = 0;
            self.report()?;
        }
        Ok(())
    }

    /// Counts memory kept until the end.
    pub(crate) fn remember(&mut self, bytes: usize) -> Result<()> {
        self.remembered = self.remembered.saturating_add(bytes as u64);
        if self.remembered > MAX_REMEMBERED_BYTES {
            return Err(TemplateError::LimitExceeded {
                what: "bytes of names of directories and hard links",
                limit: MAX_REMEMBERED_BYTES,
            });
        }
        Ok(())
    }

    /// Reports the progress to the caller, who may stop the work.
    pub(crate) fn report(&mut self) -> Result<()> {
        match (self.on_progress)(self.counts.done) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(TemplateError::Cancelled),
        }
    }
}
