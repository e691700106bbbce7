//! Parser of event streams (`text/event-stream`), with limits.

use std::collections::VecDeque;

/// Maximum size of an event, in bytes. An event may contain an image.
const MAX_EVENT: usize = 16 * 1024 * 1024;

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// The event type; empty means `message`.
    pub(super) name: String,
    /// The event's data.
    pub(super) data: String,
}

/// An event is too large. The stream cannot be parsed further.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge;

/// Parses bytes into events.
#[derive(Debug, Default)]
pub(super) struct Events {
    complete: VecDeque<Event>,
    /// The incomplete line.
    line: Vec<u8>,
    /// Type and data of the incomplete event.
    name: String,
    data: String,
    /// Whether the last byte was a carriage return, which may be followed by a newline.
    is_after_return: bool,
}

impl Events {
    /// Parses the next bytes.
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

    /// The next complete event.
    pub(super) fn take(&mut self) -> Option<Event> {
        self.complete.pop_front()
    }

    fn end_line(&mut self) {
        if self.line.is_empty() {
            let (name, mut data) = (
                std::mem::take(&mut self.name),
                std::mem::take(&mut self.data),
            );
            // Each data line ends with a newline; the last newline is not part of the data.
            if data.pop().is_some() {
                self.complete.push_back(Event { name, data });
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
            // Comments, IDs and retry times are not needed: a broken stream is started again.
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
    fn events_are_parsed_from_chunks_of_any_size() {
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
    fn an_endless_event_is_refused() {
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
