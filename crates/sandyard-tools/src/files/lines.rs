//! Reads lines of a text of any size. Keeps only the requested part in memory.

use std::io::{self, BufRead};

use super::blocking::Bounds;

/// Maximum number of characters of a line.
pub(super) const MAX_LINE: usize = 2_000;
/// Maximum number of characters of a reply.
pub(super) const MAX_SHOWN: usize = 30_000;

/// A part of a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    /// The numbered lines.
    pub(super) text: String,
    /// Number of lines in `text`.
    pub(super) line_count: u64,
    /// Number of truncated lines.
    pub(super) cut: u64,
    /// Number of lines of the whole text, if its end was reached.
    pub(super) total: Option<u64>,
    /// Whether reading stopped early: the call was cancelled or the time was up.
    pub(super) is_aborted: bool,
}

/// Reads at most `limit` lines from number `first` on, numbered like `cat -n`. The first line has the number 1.
pub(super) fn part(
    mut source: impl BufRead,
    first: u64,
    limit: u64,
    bounds: &Bounds,
) -> io::Result<Part> {
    let mut part = Part::default();
    let mut number = 0;
    let mut remaining_bytes = MAX_SHOWN;
    loop {
        let is_wanted = number + 1 >= first;
        if is_wanted && part.line_count == limit {
            // Find out whether there are more lines.
            if source.fill_buf()?.is_empty() {
                part.total = Some(number);
            }
            return Ok(part);
        }
        if number % 1024 == 0 && bounds.are_over() {
            part.is_aborted = true;
            return Ok(part);
        }
        let keep = if is_wanted { MAX_LINE * 4 } else { 0 };
        let line = next(&mut source, keep, bounds)?;
        // When the time is up, the line may be incomplete, and the text may continue.
        if bounds.are_over() {
            part.is_aborted = true;
            return Ok(part);
        }
        let Some(line) = line else {
            part.total = Some(number);
            return Ok(part);
        };
        number += 1;
        if !is_wanted {
            continue;
        }
        let (text, is_cut) = display(&line);
        let text = format!("{number:>6}\t{text}\n");
        let length = text.chars().count();
        if length > remaining_bytes && part.line_count > 0 {
            return Ok(part);
        }
        remaining_bytes = remaining_bytes.saturating_sub(length);
        part.text.push_str(&text);
        part.line_count += 1;
        part.cut += u64::from(is_cut);
    }
}

struct Line {
    bytes: Vec<u8>,
    /// Length of the whole line, without its ending.
    length: usize,
}

/// The next line, of which at most `keep` bytes are kept; none at the end. When the time is up, the line may be incomplete.
fn next(source: &mut impl BufRead, keep: usize, bounds: &Bounds) -> io::Result<Option<Line>> {
    let mut line = Line {
        bytes: Vec::new(),
        length: 0,
    };
    let mut has_any = false;
    loop {
        let available = source.fill_buf()?;
        if available.is_empty() || bounds.are_over() {
            return Ok(has_any.then_some(line));
        }
        has_any = true;
        let end = available.iter().position(|byte| *byte == b'\n');
        let content = &available[..end.unwrap_or(available.len())];
        let length = keep.saturating_sub(line.bytes.len()).min(content.len());
        line.bytes.extend_from_slice(&content[..length]);
        line.length += content.len();
        let used = content.len() + usize::from(end.is_some());
        source.consume(used);
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}

fn display(line: &Line) -> (String, bool) {
    let bytes = line.bytes.strip_suffix(b"\r").unwrap_or(&line.bytes);
    let text = String::from_utf8_lossy(bytes);
    match text.char_indices().nth(MAX_LINE) {
        Some((end, _)) => {
            let length = line.length;
            let text = format!("{} [truncated: the line has {length} bytes]", &text[..end]);
            (text, true)
        }
        None => (text.into_owned(), false),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read, repeat};
    use std::time::Duration;

    use tokio_util::sync::CancellationToken;

    use super::*;

    #[test]
    fn an_endless_line_needs_little_memory() {
        let bounds = Bounds::new(&CancellationToken::new(), Duration::from_secs(600));
        let length = 50 * 1024 * 1024;
        let mut source = BufReader::new(repeat(b'x').take(length));
        let line = next(&mut source, MAX_LINE * 4, &bounds).unwrap().unwrap();
        assert_eq!(line.length as u64, length);
        assert_eq!(line.bytes.len(), MAX_LINE * 4);
        assert!(
            line.bytes.capacity() < 64 * 1024,
            "{}",
            line.bytes.capacity()
        );
        assert!(next(&mut source, 10, &bounds).unwrap().is_none());
    }

    /// A source of one-letter lines that cancels the call while it is read.
    struct Cancels<'a> {
        remaining: usize,
        cancelled: &'a CancellationToken,
    }

    impl Read for Cancels<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.remaining == 0 {
                self.cancelled.cancel();
            }
            self.remaining = self.remaining.saturating_sub(1);
            let line = b"x\n".get(..buffer.len().min(2)).unwrap_or_default();
            buffer[..line.len()].copy_from_slice(line);
            Ok(line.len())
        }
    }

    #[test]
    fn an_aborted_read_is_not_the_end_of_the_text() {
        for first in [1, 5, 900] {
            let cancelled = CancellationToken::new();
            let bounds = Bounds::new(&cancelled, Duration::from_secs(600));
            let source = Cancels {
                remaining: 10,
                cancelled: &cancelled,
            };
            // As small as a line, so that there is more to read when the time is up.
            let source = BufReader::with_capacity(2, source);
            let part = part(source, first, u64::MAX, &bounds).unwrap();
            assert!(part.is_aborted, "{first}: {part:?}");
            assert_eq!(part.total, None);
        }
    }
}
