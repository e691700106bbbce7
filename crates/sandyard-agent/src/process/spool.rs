//! Output that no longer fits in memory, in unlinked files on the sandbox's own disk.
//!
//! The files have no name, so no program inside finds them, no snapshot or diff includes them, and they end with the agent. They
//! count towards the sandbox's disk limit like all its files.

use std::cell::Cell;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use bytes::Bytes;
use rustix::fs::{Mode, OFlags};

use super::ring::Channel;

/// Size of one file in bytes. The oldest file is dropped as a whole, which frees its space immediately.
const FILE_BYTES: u64 = 1 << 20;

/// Maximum number of changes of stream in one file, so that its index in memory stays small.
const FILE_SEGMENTS: usize = 4096;

/// Maximum number of files of all commands together: 64 MiB.
const MAX_FILES: usize = 64;

/// Folders for the files, in order of preference: `/tmp` may be in memory.
const FOLDERS: [&str; 3] = ["/var/tmp", "/tmp", "/"];

/// Number of files of all commands together.
#[derive(Debug, Default)]
pub(crate) struct SpoolBudget(Cell<usize>);

/// Output of one command, in order and without a gap.
#[derive(Debug)]
pub(super) struct Spool {
    files: VecDeque<SpoolFile>,
    budget: Rc<SpoolBudget>,
}

#[derive(Debug)]
struct SpoolFile {
    file: OwnedFd,
    /// Position of its first byte.
    start: u64,
    /// Runs of one channel: which, and the position after its last byte.
    segments: Vec<(Channel, u64)>,
    budget: Rc<SpoolBudget>,
}

impl Spool {
    pub(super) fn new(budget: Rc<SpoolBudget>) -> Self {
        Self {
            files: VecDeque::new(),
            budget,
        }
    }

    /// Position of the oldest byte; `None` when it is empty.
    pub(super) fn start(&self) -> Option<u64> {
        self.files.front().map(|file| file.start)
    }

    /// Appends output. When all files are in use the oldest is dropped. When a write fails everything is dropped, because the
    /// output must have no gap.
    pub(super) fn push(&mut self, channel: Channel, position: u64, bytes: &[u8]) {
        if self.files.back().is_some_and(|last| last.end() != position) {
            self.files.clear();
        }
        if self.files.back().is_none_or(SpoolFile::is_full) {
            if self.budget.0.get() >= MAX_FILES && self.files.pop_front().is_none() {
                return;
            }
            match SpoolFile::create(position, &self.budget) {
                Some(file) => self.files.push_back(file),
                None => return self.files.clear(),
            }
        }
        if let Some(last) = self.files.back_mut()
            && !last.push(channel, bytes)
        {
            self.files.clear();
        }
    }

    /// Drops files that hold nothing from `position` on.
    pub(super) fn drop_before(&mut self, position: u64) {
        while self
            .files
            .front()
            .is_some_and(|file| file.end() <= position)
        {
            self.files.pop_front();
        }
    }

    /// Copies out what follows `position`, or the oldest there is: at most `max` bytes of one channel, and the position after them.
    pub(super) fn read(&self, position: u64, max: usize) -> Option<(Channel, Bytes, u64)> {
        let at = self.files.partition_point(|file| file.end() <= position);
        self.files.get(at)?.read(position, max)
    }
}

impl SpoolFile {
    fn create(start: u64, budget: &Rc<SpoolBudget>) -> Option<Self> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = FOLDERS
            .iter()
            .find_map(|folder| rustix::fs::open(*folder, flags, mode).ok())?;
        budget.0.set(budget.0.get() + 1);
        Some(Self {
            file,
            start,
            segments: Vec::new(),
            budget: budget.clone(),
        })
    }

    fn end(&self) -> u64 {
        self.segments.last().map_or(self.start, |(_, end)| *end)
    }

    fn is_full(&self) -> bool {
        self.end() - self.start >= FILE_BYTES || self.segments.len() >= FILE_SEGMENTS
    }

    fn push(&mut self, channel: Channel, mut bytes: &[u8]) -> bool {
        let mut end = self.end();
        while !bytes.is_empty() {
            match rustix::io::pwrite(&self.file, bytes, end - self.start) {
                Ok(written @ 1..) => {
                    bytes = &bytes[written..];
                    end += written as u64;
                }
                Err(rustix::io::Errno::INTR) => {}
                Ok(0) | Err(_) => return false,
            }
        }
        match self.segments.last_mut() {
            Some((last, last_end)) if *last == channel => *last_end = end,
            _ => self.segments.push((channel, end)),
        }
        true
    }

    fn read(&self, position: u64, max: usize) -> Option<(Channel, Bytes, u64)> {
        let from = position.max(self.start);
        let index = self.segments.partition_point(|(_, end)| *end <= from);
        let (channel, end) = *self.segments.get(index)?;
        let mut bytes = vec![0; max.min((end - from) as usize)];
        let mut filled = 0;
        while filled < bytes.len() {
            let at = from - self.start + filled as u64;
            match rustix::io::pread(&self.file, &mut bytes[filled..], at) {
                Ok(count @ 1..) => filled += count,
                Err(rustix::io::Errno::INTR) => {}
                // The disk cannot read it any more; the returned position is still right.
                Ok(0) | Err(_) => break,
            }
        }
        Some((channel, bytes.into(), end.min(from + max as u64)))
    }
}

impl Drop for SpoolFile {
    fn drop(&mut self) {
        self.budget.0.set(self.budget.0.get().saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(spool: &Spool, mut position: u64) -> Vec<(Channel, Vec<u8>)> {
        let mut out = Vec::new();
        while let Some((channel, bytes, next)) = spool.read(position, 7) {
            out.push((channel, bytes.to_vec()));
            position = next;
        }
        out
    }

    #[test]
    fn output_comes_back_in_order_and_from_any_position() {
        let mut spool = Spool::new(Rc::default());
        spool.push(Channel::Stdout, 10, b"0123456789");
        spool.push(Channel::Stderr, 20, b"ab");
        assert_eq!(spool.start(), Some(10));
        assert_eq!(
            all(&spool, 0),
            [
                (Channel::Stdout, b"0123456".to_vec()),
                (Channel::Stdout, b"789".to_vec()),
                (Channel::Stderr, b"ab".to_vec()),
            ]
        );
        assert_eq!(all(&spool, 21), [(Channel::Stderr, b"b".to_vec())]);
    }

    #[test]
    fn the_oldest_file_is_dropped_when_all_are_in_use_and_the_rest_has_no_gap() {
        let budget = Rc::new(SpoolBudget::default());
        let mut spool = Spool::new(budget.clone());
        let piece = vec![b'x'; FILE_BYTES as usize];
        for number in 0..MAX_FILES as u64 + 3 {
            spool.push(Channel::Stdout, number * FILE_BYTES, &piece);
        }
        assert_eq!(spool.start(), Some(3 * FILE_BYTES));
        assert_eq!(budget.0.get(), MAX_FILES);
        spool.drop_before(5 * FILE_BYTES);
        assert_eq!(
            (spool.start(), budget.0.get()),
            (Some(5 * FILE_BYTES), MAX_FILES - 2)
        );
        drop(spool);
        assert_eq!(budget.0.get(), 0);
    }
}
