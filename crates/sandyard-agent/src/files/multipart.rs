//! A streaming parser of `multipart/form-data`.
//!
//! The crate `multer` buffers a fast sender's stream without bound, does not bound headers, and needs `Send` streams; the agent
//! must hold little memory and has one thread.

use std::collections::VecDeque;

/// Maximum size of one part's headers, in bytes.
const MAX_HEADER_BYTES: usize = 16 * 1024;

/// Maximum length of a boundary (RFC 2046), in bytes.
const MAX_BOUNDARY_BYTES: usize = 70;

/// Maximum number of blanks between a delimiter and the end of its line.
const MAX_PADDING_BYTES: usize = 70;

/// An event of the parser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// A part begins.
    Begin(Part),
    /// Bytes of the part.
    Data(Vec<u8>),
    /// The part has ended.
    End,
}

/// The headers of a part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) filename: Option<String>,
}

/// Why a body is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum MultipartError {
    #[error("the content type has no valid boundary")]
    Boundary,
    #[error("the headers of a part are longer than 16 KiB")]
    LongHeaders,
    #[error("the multipart body is malformed")]
    Malformed,
    #[error("the multipart body is truncated")]
    Truncated,
}

/// A parser fed in pieces of any size; it holds one piece plus a boundary or a part's headers at most.
#[derive(Debug)]
pub(super) struct Parser {
    /// Line break, two dashes, boundary: what ends a part.
    delimiter: Vec<u8>,
    buffer: Vec<u8>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first delimiter.
    Preamble,
    /// After a delimiter: either a line break or two dashes come.
    AfterDelimiter,
    Headers,
    Data,
    Done,
}

impl Parser {
    /// Creates a parser for a content type.
    pub(super) fn new(content_type: &str) -> Result<Self, MultipartError> {
        let boundary = boundary(content_type).ok_or(MultipartError::Boundary)?;
        Ok(Self {
            delimiter: [b"\r\n--", boundary.as_bytes()].concat(),
            // The first delimiter has no line break before it, so one is added.
            buffer: b"\r\n".to_vec(),
            state: State::Preamble,
        })
    }

    /// Parses a piece and returns its events.
    pub(super) fn push(&mut self, piece: &[u8]) -> Result<VecDeque<Event>, MultipartError> {
        self.buffer.extend_from_slice(piece);
        let mut events = VecDeque::new();
        while self.step(&mut events)? {}
        Ok(events)
    }

    /// Checks, at the end of the body, that the last delimiter came.
    pub(super) fn finish(&self) -> Result<(), MultipartError> {
        match self.state {
            State::Done => Ok(()),
            _ => Err(MultipartError::Truncated),
        }
    }

    /// Advances by one state if there are bytes enough.
    fn step(&mut self, events: &mut VecDeque<Event>) -> Result<bool, MultipartError> {
        match self.state {
            State::Preamble => Ok(self.skip_to_delimiter(|_| ())),
            State::Data => {
                let mut data = Vec::new();
                let found = self.skip_to_delimiter(|bytes| data.extend_from_slice(bytes));
                if !data.is_empty() {
                    events.push_back(Event::Data(data));
                }
                if found {
                    events.push_back(Event::End);
                }
                Ok(found)
            }
            State::AfterDelimiter => self.after_delimiter(),
            State::Headers => self.headers(events),
            State::Done => {
                self.buffer.clear();
                Ok(false)
            }
        }
    }

    /// Passes on what is certainly before the delimiter; true when the delimiter was found.
    fn skip_to_delimiter(&mut self, mut sink: impl FnMut(&[u8])) -> bool {
        match find(&self.buffer, &self.delimiter) {
            Some(at) => {
                sink(&self.buffer[..at]);
                self.buffer.drain(..at + self.delimiter.len());
                self.state = State::AfterDelimiter;
                true
            }
            None => {
                let safe = self.buffer.len().saturating_sub(self.delimiter.len() - 1);
                sink(&self.buffer[..safe]);
                self.buffer.drain(..safe);
                false
            }
        }
    }

    fn after_delimiter(&mut self) -> Result<bool, MultipartError> {
        if self.buffer.starts_with(b"--") {
            self.state = State::Done;
            return Ok(true);
        }
        let padding = self
            .buffer
            .iter()
            .take_while(|&&byte| byte == b' ' || byte == b'\t')
            .count();
        if padding > MAX_PADDING_BYTES {
            return Err(MultipartError::Malformed);
        }
        match &self.buffer[padding..] {
            [b'\r', b'\n', ..] => {
                self.buffer.drain(..padding + 2);
                self.state = State::Headers;
                Ok(true)
            }
            [] | [b'\r'] | [b'-'] => Ok(false),
            _ => Err(MultipartError::Malformed),
        }
    }

    fn headers(&mut self, events: &mut VecDeque<Event>) -> Result<bool, MultipartError> {
        let (head, length) = if self.buffer.starts_with(b"\r\n") {
            (0, 2)
        } else {
            match find(&self.buffer, b"\r\n\r\n") {
                Some(at) => (at, at + 4),
                // All but one byte of the final empty line may be there.
                None if self.buffer.len() > MAX_HEADER_BYTES + 3 => {
                    return Err(MultipartError::LongHeaders);
                }
                None => return Ok(false),
            }
        };
        if head > MAX_HEADER_BYTES {
            return Err(MultipartError::LongHeaders);
        }
        // The delimiter after an empty part may share its line break with the headers. This must be decided now: later
        // those bytes are data.
        let (bare, body) = (&self.delimiter[2..], &self.buffer[length..]);
        let is_empty = body.starts_with(bare);
        if !is_empty && bare.starts_with(body) {
            return Ok(false);
        }
        let text = String::from_utf8_lossy(&self.buffer[..head]).into_owned();
        self.buffer.drain(..length);
        events.push_back(Event::Begin(part(&text)));
        self.state = State::Data;
        if is_empty {
            self.buffer.splice(..0, *b"\r\n");
        }
        Ok(true)
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    let first = *needle.first()?;
    let mut from = 0;
    while let Some(offset) = haystack[from..].iter().position(|&byte| byte == first) {
        let at = from + offset;
        if haystack[at..].starts_with(needle) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

fn boundary(content_type: &str) -> Option<String> {
    let parameter = parameters(content_type).find(|(key, _)| key.eq_ignore_ascii_case("boundary"));
    let (_, boundary) = parameter?;
    let is_usable = !boundary.is_empty() && boundary.len() <= MAX_BOUNDARY_BYTES;
    is_usable.then_some(boundary)
}

fn part(headers: &str) -> Part {
    let mut part = Part::default();
    for line in headers.split("\r\n") {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        if !name.trim().eq_ignore_ascii_case("content-disposition") {
            continue;
        }
        for (key, value) in parameters(value) {
            match key.to_ascii_lowercase().as_str() {
                "name" => part.name = value,
                "filename" => part.filename = Some(value),
                _ => {}
            }
        }
    }
    part
}

/// The `key=value` pairs of a header, the values unquoted.
fn parameters(header: &str) -> impl Iterator<Item = (String, String)> {
    let mut rest = header.split_once(';').map_or("", |(_, rest)| rest);
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches([' ', '\t', ';']);
        let (key, after) = rest.split_once('=')?;
        let (value, remaining) = match after.strip_prefix('"') {
            Some(quoted) => unquote(quoted),
            None => {
                let end = after.find(';').unwrap_or(after.len());
                (after[..end].trim().to_owned(), &after[end..])
            }
        };
        rest = remaining;
        Some((key.trim().to_owned(), value))
    })
}

/// The text up to the closing quote and what follows. Browsers and HTTP libraries write a quote within as `%22` or
/// with a backslash.
fn unquote(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &text[at + 1..]),
            '\\' => match characters.clone().next() {
                Some((_, escaped @ ('"' | '\\'))) => {
                    value.push(escaped);
                    characters.next();
                }
                _ => value.push('\\'),
            },
            _ if text[at..].starts_with("%22") => {
                value.push('"');
                characters.nth(1);
            }
            other => value.push(other),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &str = "multipart/form-data; boundary=XyZ";
    const BODY: &[u8] =
        b"--XyZ\r\nContent-Disposition: form-data; name=\"file\"; filename=\"/a b.txt\"\r\n\
        Content-Type: text/plain\r\n\r\nhello\r\n--Xy not yet\r\n--XyZ\r\n\
        content-disposition: form-data; name=file; filename=empty\r\n\r\n\r\n--XyZ--\r\n";

    fn parts(
        pieces: impl Iterator<Item = Vec<u8>>,
    ) -> Result<Vec<(Part, Vec<u8>)>, MultipartError> {
        let mut parser = Parser::new(TYPE)?;
        let mut parts: Vec<(Part, Vec<u8>)> = Vec::new();
        for piece in pieces {
            for event in parser.push(&piece)? {
                match event {
                    Event::Begin(part) => parts.push((part, Vec::new())),
                    Event::Data(data) => parts.last_mut().unwrap().1.extend(data),
                    Event::End => {}
                }
            }
        }
        parser.finish()?;
        Ok(parts)
    }

    #[test]
    fn parts_come_out_whole_however_the_body_is_cut() {
        for size in 1..BODY.len() {
            let parts = parts(BODY.chunks(size).map(<[u8]>::to_vec)).unwrap();
            assert_eq!(parts.len(), 2, "pieces of {size}");
            assert_eq!(parts[0].0.filename.as_deref(), Some("/a b.txt"));
            assert_eq!(parts[0].1, b"hello\r\n--Xy not yet");
            assert_eq!(parts[1].0.filename.as_deref(), Some("empty"));
            assert_eq!(parts[1].1, b"");
        }
    }

    #[test]
    fn an_empty_part_may_share_its_line_break_with_its_headers_however_the_body_is_cut() {
        for body in [
            &b"--XyZ\r\nx: y\r\n\r\n--XyZ\r\nx: y\r\n\r\n--Xy\r\n--XyZ--\r\n"[..],
            b"--XyZ\r\n\r\n--XyZ\r\n\r\n--Xy\r\n--XyZ--\r\n",
        ] {
            for size in 1..=body.len() {
                let parts = parts(body.chunks(size).map(<[u8]>::to_vec)).unwrap();
                let data: Vec<_> = parts.into_iter().map(|(_, data)| data).collect();
                assert_eq!(data, [&b""[..], b"--Xy"], "pieces of {size}");
            }
        }
    }

    #[test]
    fn limits_are_the_same_however_the_body_is_cut() {
        for (over, is_good) in [(0, true), (1, false)] {
            let padding = " ".repeat(MAX_PADDING_BYTES + over);
            let header = "x".repeat(MAX_HEADER_BYTES + over);
            for head in [padding, format!("\r\n{header}")] {
                let body = format!("--XyZ{head}\r\n\r\n\r\n--XyZ--");
                for size in [1, 5, 64, body.len()] {
                    let parts = parts(body.as_bytes().chunks(size).map(<[u8]>::to_vec));
                    assert_eq!(parts.is_ok(), is_good, "pieces of {size}");
                }
            }
        }
    }

    #[test]
    fn a_cut_off_body_is_an_error() {
        for length in 0..BODY.len() - 4 {
            assert_eq!(
                parts([BODY[..length].to_vec()].into_iter()),
                Err(MultipartError::Truncated),
                "{length} bytes"
            );
        }
    }

    #[test]
    fn endless_headers_and_garbage_are_errors() {
        let mut parser = Parser::new(TYPE).unwrap();
        parser.push(b"--XyZ\r\n").unwrap();
        let long = vec![b'a'; MAX_HEADER_BYTES + 4];
        assert_eq!(parser.push(&long), Err(MultipartError::LongHeaders));
        let mut parser = Parser::new(TYPE).unwrap();
        assert_eq!(parser.push(b"--XyZgarbage"), Err(MultipartError::Malformed));
    }

    #[test]
    fn an_endless_preamble_is_not_buffered() {
        let mut parser = Parser::new(TYPE).unwrap();
        for _ in 0..100 {
            parser.push(&[b'x'; 10_000]).unwrap();
        }
        assert!(parser.buffer.len() < 100);
    }

    #[test]
    fn boundaries_are_found_quoted_or_not() {
        assert_eq!(
            boundary("multipart/form-data; boundary=\"a b\"").as_deref(),
            Some("a b")
        );
        assert_eq!(
            boundary("m/f; charset=x; Boundary=q;z=1").as_deref(),
            Some("q")
        );
        assert_eq!(boundary("multipart/form-data"), None);
        assert_eq!(boundary("m/f; boundary="), None);
    }

    #[test]
    fn quotes_within_names_are_understood() {
        let part =
            part("Content-Disposition: form-data; name=\"file\"; filename=\"a\\\"b%22c\\d\"");
        assert_eq!(part.filename.as_deref(), Some("a\"b\"c\\d"));
    }
}
