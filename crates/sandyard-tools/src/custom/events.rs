//! A stream of events (`text/event-stream`) as it comes in, with bounds.

use std::collections::VecDeque;

/// Largest event; a picture may be in one.
const MAX_EVENT: usize = 16 * 1024 * 1024;

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// Its kind; empty if none was said, which means `message`.
    pub(super) name: String,
    /// What it says.
    pub(super) data: String,
}

/// An event was too large. What comes after it cannot be told from the rest of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// Makes events of bytes.
#[derive(Debug, Default)]
pub(super) struct Events {
    whole: VecDeque<Event>,
    /// The line that has not ended.
    line: Vec<u8>,
    /// Of the event that has not ended.
    name: String,
    data: String,
    /// Whether the last byte was the first half of what may be a line's end of two.
    is_after_return: bool,
}

impl Events {
    /// Takes what comes next.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        for &byte in bytes {
            let is_after_return = std::mem::replace(&mut self.is_after_return, byte == b'\r');
            match byte {
                b'\n' if is_after_return => {}
                b'\n' | b'\r' => self.end_line(),
                _ if self.line.len() + self.data.len() >= MAX_EVENT => return Err(TooLarge),
                _ => self.line.push(byte),
            }
        }
        Ok(())
    }

    /// The next whole event.
    pub(super) fn take(&mut self) -> Option<Event> {
        self.whole.pop_front()
    }

    fn end_line(&mut self) {
        if self.line.is_empty() {
            let (name, mut data) = (
                std::mem::take(&mut self.name),
                std::mem::take(&mut self.data),
            );
            // Behind each line of data there is an end of line, of which the last is not part of it.
            if data.pop().is_some() {
                self.whole.push_back(Event { name, data });
            }
            return;
        }
        let line = String::from_utf8_lossy(&self.line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.name = value.to_owned(),
            "data" => {
                self.data.push_str(value);
                self.data.push('\n');
            }
            // Comments, numbers and times to wait mean nothing here: a stream that broke is begun anew.
            _ => {}
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8], size: usize) -> Vec<(String, String)> {
        let mut events = Events::default();
        for piece in text.chunks(size) {
            events.feed(piece).unwrap();
        }
        std::iter::from_fn(|| events.take())
            .map(|event| (event.name, event.data))
            .collect()
    }

    #[test]
    fn events_are_found_however_they_come() {
        let text = ": hello\n\nevent: endpoint\r\ndata: /a?b=1\r\n\r\ndata:one\rdata: two\rid: 7\r\rdata\n\nevent: x\n\n\
                    data:  \u{e9}\n\ndata: unfinished";
        let expected = [
            ("endpoint", "/a?b=1"),
            ("", "one\ntwo"),
            ("", ""),
            ("", " \u{e9}"),
        ]
        .map(|(name, data)| (name.to_owned(), data.to_owned()));
        for size in [1, 2, 3, 7, 1000] {
            assert_eq!(all(text.as_bytes(), size), expected, "{size}");
        }
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let piece = vec![b'x'; 1 << 20];
        let mut one_line = Events::default();
        let fed = (0..=MAX_EVENT >> 20).map(|_| one_line.feed(&piece));
        assert!(fed.collect::<Result<(), _>>().is_err());
        let mut many_lines = Events::default();
        let lines = b"data: x\n".repeat(1 << 17);
        let fed = (0..MAX_EVENT >> 17).map(|_| many_lines.feed(&lines));
        assert!(fed.collect::<Result<(), _>>().is_err());
        assert_eq!(many_lines.take(), None);
    }
}
