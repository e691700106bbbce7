//! Recent output of commands, by sandbox, in memory.
//!
//! Events are kept in the store; output is not: it may be large and hold secrets. What is here is for people who watch.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use sandyard_core::SandboxId;
use tokio::sync::broadcast;

use crate::request::{LogEntry, LogSource};

/// Lines kept of one sandbox.
const MAX_LINES: usize = 1000;
/// Bytes kept of one sandbox.
const MAX_BYTES: usize = 256 << 10;
/// Bytes of one line; longer ones are cut into several.
const MAX_LINE: usize = 8 << 10;

/// The log books of all sandboxes.
#[derive(Debug, Default)]
pub(crate) struct LogBooks {
    books: Mutex<HashMap<SandboxId, Book>>,
}

#[derive(Debug)]
struct Book {
    lines: VecDeque<LogEntry>,
    bytes: usize,
    next_seq: u64,
    followers: broadcast::Sender<LogEntry>,
}

impl Default for Book {
    fn default() -> Self {
        Self {
            lines: VecDeque::new(),
            bytes: 0,
            next_seq: 1,
            followers: broadcast::channel(256).0,
        }
    }
}

impl LogBooks {
    /// Adds text as lines.
    pub(crate) fn add(
        &self,
        id: &SandboxId,
        at_ms: i64,
        source: LogSource,
        pid: Option<u32>,
        text: &str,
    ) {
        let mut books = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        let book = books.entry(id.clone()).or_default();
        for line in text.split_inclusive('\n') {
            let mut rest = line.trim_end_matches(['\n', '\r']);
            loop {
                let cut = rest.floor_char_boundary(MAX_LINE.min(rest.len()));
                book.push(at_ms, source, pid, rest[..cut].to_owned());
                rest = &rest[cut..];
                if rest.is_empty() {
                    break;
                }
            }
        }
    }

    /// The newest lines, oldest first.
    pub(crate) fn tail(&self, id: &SandboxId, limit: usize) -> Vec<LogEntry> {
        let books = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        books.get(id).map_or_else(Vec::new, |book| {
            let skip = book.lines.len().saturating_sub(limit);
            book.lines.iter().skip(skip).cloned().collect()
        })
    }

    /// The lines from now on.
    pub(crate) fn follow(&self, id: &SandboxId) -> broadcast::Receiver<LogEntry> {
        let mut books = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        books.entry(id.clone()).or_default().followers.subscribe()
    }

    /// Sandboxes something is remembered of.
    pub(crate) fn ids(&self) -> Vec<SandboxId> {
        let books = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        books.keys().cloned().collect()
    }

    /// Forgets a sandbox; whoever follows it hears the end.
    pub(crate) fn forget(&self, id: &SandboxId) {
        self.books
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(id);
    }
}

impl Book {
    fn push(&mut self, at_ms: i64, source: LogSource, pid: Option<u32>, text: String) {
        let entry = LogEntry {
            seq: self.next_seq,
            at_ms,
            source,
            pid,
            text,
        };
        self.next_seq += 1;
        self.bytes += entry.text.len();
        // Nobody following is the usual case and no failure.
        let _ = self.followers.send(entry.clone());
        self.lines.push_back(entry);
        while self.lines.len() > MAX_LINES || self.bytes > MAX_BYTES {
            let Some(oldest) = self.lines.pop_front() else {
                break;
            };
            self.bytes -= oldest.text.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_lines_go_first_and_long_ones_are_cut() {
        let books = LogBooks::default();
        let id: SandboxId = "abc".parse().unwrap();
        books.add(&id, 1, LogSource::Stdout, Some(7), "first\nsecond\r\n");
        books.add(&id, 2, LogSource::Stderr, Some(7), &"é".repeat(MAX_LINE));
        let texts: Vec<_> = books
            .tail(&id, 10)
            .into_iter()
            .map(|line| line.text)
            .collect();
        assert_eq!(&texts[..2], ["first", "second"]);
        assert_eq!(texts[2..].concat(), "é".repeat(MAX_LINE));
        for _ in 0..2 * MAX_LINES {
            books.add(&id, 3, LogSource::Stdout, None, "x");
        }
        assert_eq!(books.tail(&id, usize::MAX).len(), MAX_LINES);
    }
}
