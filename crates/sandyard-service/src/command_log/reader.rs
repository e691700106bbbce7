//! Reads a command log.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use super::files::{Segment, read_segment, segments};
use super::record::{Lines, Record, source_of};
use crate::request::LogEntry;

/// Lines of a log, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogPage {
    pub(crate) entries: Vec<LogEntry>,
    /// Number of the sandbox's first lines that are deleted.
    pub(crate) dropped: u64,
    /// Whether there are more lines after these.
    pub(crate) has_more: bool,
}

/// A position in a log.
#[derive(Clone, Debug)]
pub(crate) struct LogCursor {
    /// The number of the last line that was read.
    seq: u64,
    /// The file to continue in, and the offset there.
    position: Option<(Segment, u64)>,
}

impl LogCursor {
    /// Starts after a line.
    pub(crate) fn after(seq: u64) -> Self {
        Self {
            seq,
            position: None,
        }
    }

    /// Reads the next lines: at most `max_lines`, and about `max_bytes`.
    pub(crate) fn read(
        &mut self,
        folder: &Path,
        max_lines: usize,
        max_bytes: usize,
    ) -> io::Result<LogPage> {
        let all = segments(folder)?;
        let mut page = LogPage {
            dropped: all.first().map_or(0, |first| first.first_seq - 1),
            ..LogPage::default()
        };
        let begin = match &self.position {
            Some((segment, _)) if all.contains(segment) => {
                all.partition_point(|other| other < segment)
            }
            _ => {
                self.position = None;
                let next = self.seq + 1;
                all.partition_point(|segment| segment.first_seq <= next)
                    .saturating_sub(1)
            }
        };
        let mut bytes = 0;
        for segment in &all[begin.min(all.len())..] {
            let mut offset = match &self.position {
                Some((known, offset)) if known == segment => *offset,
                _ => 0,
            };
            let content = match read_segment(&segment.path(folder), offset) {
                // The oldest file was removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                content => content?,
            };
            let mut rest = content.as_slice();
            while let Some((record, length)) = Record::decode(rest) {
                if let Record::Lines(lines) = record {
                    for entry in entries(&lines).filter(|entry| entry.seq > self.seq) {
                        if page.entries.len() >= max_lines || bytes >= max_bytes {
                            page.has_more = true;
                            break;
                        }
                        bytes += entry.text.len();
                        page.entries.push(entry);
                    }
                    if let Some(last) = page.entries.last() {
                        self.seq = self.seq.max(last.seq);
                    }
                    if page.has_more {
                        self.position = Some((segment.clone(), offset));
                        return Ok(page);
                    }
                }
                offset += length as u64;
                rest = &rest[length..];
            }
            self.position = Some((segment.clone(), offset));
        }
        Ok(page)
    }

    /// Reads the newest lines, and returns a cursor after them.
    pub(crate) fn tail(
        folder: &Path,
        max_lines: usize,
        max_bytes: usize,
    ) -> io::Result<(LogPage, Self)> {
        let next_seq = next_seq(folder)?;
        let mut cursor = Self::after(next_seq.saturating_sub(1 + max_lines as u64));
        let mut newest = VecDeque::new();
        let mut bytes = 0;
        let mut dropped;
        loop {
            let page = cursor.read(folder, max_lines.max(1), max_bytes)?;
            dropped = page.dropped;
            for entry in page.entries {
                bytes += entry.text.len();
                newest.push_back(entry);
            }
            while newest.len() > max_lines || bytes > max_bytes {
                let Some(LogEntry { text, .. }) = newest.pop_front() else {
                    break;
                };
                bytes -= text.len();
            }
            if !page.has_more {
                break;
            }
        }
        let page = LogPage {
            entries: newest.into(),
            dropped,
            has_more: false,
        };
        Ok((page, cursor))
    }
}

/// The number of the next line.
fn next_seq(folder: &Path) -> io::Result<u64> {
    let Some(last) = segments(folder)?.pop() else {
        return Ok(1);
    };
    let content = read_segment(&last.path(folder), 0)?;
    let mut rest = content.as_slice();
    let mut next = last.first_seq;
    while let Some((record, length)) = Record::decode(rest) {
        if let Record::Lines(lines) = record {
            next = lines.seq + u64::from(lines.count);
        }
        rest = &rest[length..];
    }
    Ok(next)
}

fn entries(lines: &Lines) -> impl Iterator<Item = LogEntry> {
    let texts = lines.text.split_inclusive(|byte| *byte == b'\n');
    texts.zip(lines.seq..).map(|(text, seq)| LogEntry {
        seq,
        at_ms: lines.at_ms,
        source: source_of(lines.source),
        pid: (lines.pid != 0).then_some(lines.pid),
        text: String::from_utf8_lossy(text)
            .trim_end_matches(['\n', '\r'])
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::files::{Bounds, LogFiles};
    use super::*;

    #[test]
    fn pages_and_tails_are_whole_and_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let bounds = Bounds {
            segment: 3000,
            total: u64::MAX,
        };
        let mut files = LogFiles::open(folder, bounds).unwrap();
        let mut following = LogCursor::after(0);
        let mut followed = 0;
        for number in 0..300u64 {
            let text = format!("{number} a\n{number} b\n").into_bytes();
            let record = Lines {
                count: 2,
                text,
                ..Lines::default()
            };
            files.append("one", &mut [Record::Lines(record)]).unwrap();
            if number % 7 == 0 {
                followed += following
                    .read(folder, usize::MAX, usize::MAX)
                    .unwrap()
                    .entries
                    .len();
            }
        }
        followed += following
            .read(folder, usize::MAX, usize::MAX)
            .unwrap()
            .entries
            .len();
        assert_eq!(followed, 600);
        let (mut after, mut got) = (0, Vec::new());
        loop {
            let page = LogCursor::after(after).read(folder, 7, usize::MAX).unwrap();
            after = page.entries.last().map_or(after, |entry| entry.seq);
            got.extend(page.entries);
            if !page.has_more {
                break;
            }
        }
        assert_eq!(got.len(), 600);
        assert!(got.iter().zip(1..).all(|(entry, seq)| entry.seq == seq));
        assert_eq!(got[599].text, "299 b");
        let (tail, mut cursor) = LogCursor::tail(folder, 5, usize::MAX).unwrap();
        assert_eq!(tail.entries, got[595..]);
        assert!(cursor.read(folder, 9, 9).unwrap().entries.is_empty());
        let (tail, _) = LogCursor::tail(folder, 100, 23).unwrap();
        assert_eq!(tail.entries, got[596..], "the newest lines that fit");
    }
}
