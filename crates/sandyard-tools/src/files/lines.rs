//! Lines of a text of any size, with only what is shown of it in memory.

use std::io::{self, BufRead};

use super::blocking::Bounds;

/// Longer lines are cut.
pub(super) const MAX_LINE: usize = 2_000;
/// Most characters of one answer.
pub(super) const MAX_SHOWN: usize = 30_000;

/// A part of a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    /// The lines with their numbers.
    pub(super) text: String,
    /// How many lines are in it.
    pub(super) shown: u64,
    /// How many of them were cut.
    pub(super) cut: u64,
    /// All lines of the text, where the end was reached.
    pub(super) total: Option<u64>,
    /// Ended before its time.
    pub(super) is_given_up: bool,
}

/// The lines from number `first` (one is the first) on, at most `limit`, numbered as `cat -n` does.
pub(super) fn part(
    mut source: impl BufRead,
    first: u64,
    limit: u64,
    bounds: &Bounds,
) -> io::Result<Part> {
    let mut part = Part::default();
    let mut number = 0;
    let mut room = MAX_SHOWN;
    loop {
        let is_wanted = number + 1 >= first;
        if is_wanted && part.shown == limit {
            // Whether there is more decides what is said about it.
            if source.fill_buf()?.is_empty() {
                part.total = Some(number);
            }
            return Ok(part);
        }
        if number % 1024 == 0 && bounds.are_over() {
            part.is_given_up = true;
            return Ok(part);
        }
        let keep = if is_wanted { MAX_LINE * 4 } else { 0 };
        let line = next(&mut source, keep, bounds)?;
        // Then nothing, or a part of a line, does not mean that the text ends there.
        if bounds.are_over() {
            part.is_given_up = true;
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
        let (text, is_cut) = shown(&line);
        let text = format!("{number:>6}\t{text}\n");
        let length = text.chars().count();
        if length > room && part.shown > 0 {
            return Ok(part);
        }
        room = room.saturating_sub(length);
        part.text.push_str(&text);
        part.shown += 1;
        part.cut += u64::from(is_cut);
    }
}

struct Line {
    bytes: Vec<u8>,
    /// Of the whole line, without its end.
    length: usize,
}

/// The next line, of which only so many bytes are kept; none at the end. When the time is up, it is what was read until then.
fn next(source: &mut impl BufRead, keep: usize, bounds: &Bounds) -> io::Result<Option<Line>> {
    let mut line = Line {
        bytes: Vec::new(),
        length: 0,
    };
    let mut has_any = false;
    loop {
        let there = source.fill_buf()?;
        if there.is_empty() || bounds.are_over() {
            return Ok(has_any.then_some(line));
        }
        has_any = true;
        let end = there.iter().position(|byte| *byte == b'\n');
        let content = &there[..end.unwrap_or(there.len())];
        let room = keep.saturating_sub(line.bytes.len()).min(content.len());
        line.bytes.extend_from_slice(&content[..room]);
        line.length += content.len();
        let used = content.len() + usize::from(end.is_some());
        source.consume(used);
        if end.is_some() {
            return Ok(Some(line));
        }
    }
}

fn shown(line: &Line) -> (String, bool) {
    let bytes = line.bytes.strip_suffix(b"\r").unwrap_or(&line.bytes);
    let text = String::from_utf8_lossy(bytes);
    match text.char_indices().nth(MAX_LINE) {
        Some((end, _)) => {
            let length = line.length;
            let text = format!("{} [cut: the line has {length} bytes]", &text[..end]);
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
    fn a_line_without_end_takes_no_more_memory_than_is_shown() {
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

    /// Lines of one letter, during whose reading nobody wants them any more.
    struct Cancels<'a> {
        left: usize,
        cancelled: &'a CancellationToken,
    }

    impl Read for Cancels<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.left == 0 {
                self.cancelled.cancel();
            }
            self.left = self.left.saturating_sub(1);
            let line = b"x\n".get(..buffer.len().min(2)).unwrap_or_default();
            buffer[..line.len()].copy_from_slice(line);
            Ok(line.len())
        }
    }

    #[test]
    fn a_text_does_not_end_where_the_time_does() {
        for first in [1, 5, 900] {
            let cancelled = CancellationToken::new();
            let bounds = Bounds::new(&cancelled, Duration::from_secs(600));
            let source = Cancels {
                left: 10,
                cancelled: &cancelled,
            };
            // As small as a line, so that there is more to read when the time is up.
            let source = BufReader::with_capacity(2, source);
            let part = part(source, first, u64::MAX, &bounds).unwrap();
            assert!(part.is_given_up, "{first}: {part:?}");
            assert_eq!(part.total, None);
        }
    }
}
