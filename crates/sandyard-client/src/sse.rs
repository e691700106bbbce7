//! Incremental parser of server-sent events.
//!
//! <https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream>

use std::time::Duration;

/// Longest accepted event, in bytes.
const MAX_EVENT_BYTES: usize = 16 << 20;

/// Server-sent event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseEvent {
    /// Name of the event; `message` if the server sent none.
    pub event: String,
    /// Data lines, joined by newlines.
    pub data: String,
    /// Last ID that the server sent, with this event or before.
    pub id: Option<String>,
}

/// The stream is not a stream of server-sent events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event has more than {MAX_EVENT_BYTES} bytes")]
pub struct TooLong;

/// Parser of a byte stream.
#[derive(Debug, Default)]
pub struct SseParser {
    line: Vec<u8>,
    follows_cr: bool,
    has_begun: bool,
    event: String,
    data: Vec<u8>,
    id: Option<String>,
    retry: Option<Duration>,
}

impl SseParser {
    /// Parses the next bytes and returns the events that they complete.
    ///
    /// # Errors
    ///
    /// If an event is too long.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, TooLong> {
        let mut events = Vec::new();
        for &byte in bytes {
            let is_second_half = std::mem::replace(&mut self.follows_cr, byte == b'\r');
            match byte {
                b'\n' if is_second_half => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                _ => self.line.push(byte),
            }
            if self.line.len() + self.data.len() > MAX_EVENT_BYTES {
                return Err(TooLong);
            }
        }
        Ok(events)
    }

    /// Last ID that the server sent.
    pub fn last_id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Delay before reconnecting that the server asked for.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Returns a parser for the next connection, which keeps the last ID and drops the incomplete event.
    pub(crate) fn for_next_connection(&self) -> Self {
        Self {
            id: self.id.clone(),
            retry: self.retry,
            ..Self::default()
        }
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if !std::mem::replace(&mut self.has_begun, true) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            return self.end_event();
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(0) => return None,
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"event" => self.event = String::from_utf8_lossy(value).into_owned(),
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"id" if !value.contains(&0) => {
                self.id = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"retry" => {
                let millis = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok());
                self.retry = millis.map(Duration::from_millis).or(self.retry);
            }
            _ => {}
        }
        None
    }

    fn end_event(&mut self) -> Option<SseEvent> {
        let mut event = std::mem::take(&mut self.event);
        let mut data = std::mem::take(&mut self.data);
        // Without data there is no event, but its ID counts.
        data.pop()?;
        if event.is_empty() {
            event = "message".to_owned();
        }
        Some(SseEvent {
            event,
            data: String::from_utf8_lossy(&data).into_owned(),
            id: self.id.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "\u{feff}: hello\nretry: 1500\n\nid: 7\nevent: log\ndata: a\ndata:  b\n\r\ndata\r\rid\ndata: {\"x\":\"é\"}\r\n\r\nid: 9\n\ndata: lost";

    fn event(event: &str, data: &str, id: &str) -> SseEvent {
        SseEvent {
            event: event.to_owned(),
            data: data.to_owned(),
            id: Some(id.to_owned()),
        }
    }

    #[test]
    fn a_stream_means_the_same_however_it_is_cut() {
        let expected = vec![
            event("log", "a\n b", "7"),
            event("message", "", "7"),
            event("message", "{\"x\":\"é\"}", ""),
        ];
        for size in 1..=STREAM.len() {
            let mut parser = SseParser::default();
            let mut events = Vec::new();
            for slice in STREAM.as_bytes().chunks(size) {
                events.extend(parser.push(slice).unwrap());
            }
            assert_eq!(events, expected, "in slices of {size}");
            assert_eq!(parser.last_id(), Some("9"));
            assert_eq!(parser.retry(), Some(Duration::from_millis(1500)));
        }
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut parser = SseParser::default();
        let megabyte = vec![b'x'; 1 << 20];
        let taken = (0..32).take_while(|_| parser.push(&megabyte).is_ok());
        assert_eq!(taken.count(), MAX_EVENT_BYTES >> 20);
    }
}
