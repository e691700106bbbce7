//! Text of any length, of which only the beginning and the end are kept.

/// Maximum length of output in a reply, in bytes.
pub(super) const MAX_OUTPUT: usize = 30_000;
/// How much of the beginning to keep.
const HEAD: usize = 10_000;
/// How much of the end to keep.
const TAIL: usize = MAX_OUTPUT - HEAD;

/// The beginning and the end of a text.
#[derive(Debug, Default, Clone)]
pub(super) struct BoundedText {
    head: String,
    tail: String,
    /// Bytes and lines that were dropped between them.
    dropped: (u64, u64),
}

/// A text within the limits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Excerpt {
    /// The text, with a note where a part was left out.
    pub(super) text: String,
    /// Whether a part was left out.
    pub(super) is_cut: bool,
}

impl BoundedText {
    /// Appends text.
    pub(super) fn push(&mut self, mut text: &str) {
        if self.tail.is_empty() && self.dropped.0 == 0 {
            let fits = text.floor_char_boundary(HEAD.saturating_sub(self.head.len()));
            self.head.push_str(&text[..fits]);
            text = &text[fits..];
        }
        self.tail.push_str(text);
        // Not on every call, because dropping moves the rest.
        if self.tail.len() > 4 * TAIL {
            let cut = self.tail.floor_char_boundary(self.tail.len() - 2 * TAIL);
            self.dropped.0 += cut as u64;
            self.dropped.1 += line_count(&self.tail[..cut]);
            self.tail.drain(..cut);
        }
    }

    /// The text followed by `after`, within the limits.
    pub(super) fn excerpt_with(&self, after: &str) -> Excerpt {
        let is_whole =
            self.dropped.0 == 0 && self.head.len() + self.tail.len() + after.len() <= MAX_OUTPUT;
        if is_whole {
            return Excerpt {
                text: format!("{}{}{after}", self.head, self.tail),
                is_cut: false,
            };
        }
        let rest = format!("{}{after}", self.tail);
        if self.dropped.0 == 0 {
            // The beginning may be short and `after` long.
            let full = format!("{}{rest}", self.head);
            let head = full.floor_char_boundary(HEAD);
            let tail = full.ceil_char_boundary(full.len() - TAIL).max(head);
            return with_gap(&full[..head], &full[head..tail], (0, 0), &full[tail..]);
        }
        let tail = rest.ceil_char_boundary(rest.len().saturating_sub(TAIL));
        with_gap(&self.head, &rest[..tail], self.dropped, &rest[tail..])
    }
}

fn with_gap(head: &str, omitted: &str, dropped: (u64, u64), tail: &str) -> Excerpt {
    let bytes = dropped.0 + omitted.len() as u64;
    let lines = dropped.1 + line_count(omitted);
    Excerpt {
        text: format!(
            "{head}\n[... {bytes} bytes, {lines} lines omitted; write long output to a file and read parts of it ...]\n{tail}"
        ),
        is_cut: true,
    }
}

fn line_count(text: &str) -> u64 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_is_complete() {
        let mut text = BoundedText::default();
        for _ in 0..2_999 {
            text.push("é23456789");
        }
        let excerpt = text.excerpt_with("end");
        assert!(!excerpt.is_cut);
        assert_eq!(excerpt.text.len(), 29_993);
        assert!(excerpt.text.starts_with("é2345") && excerpt.text.ends_with("89end"));
    }

    #[test]
    fn a_long_text_keeps_both_ends_and_counts_every_byte() {
        let mut text = BoundedText::default();
        let mut total = 0;
        for number in 0..100_000 {
            let line = format!("line {number} é\n");
            total += line.len();
            text.push(&line);
        }
        let excerpt = text.excerpt_with("last");
        assert!(excerpt.is_cut);
        assert!(excerpt.text.len() < MAX_OUTPUT + 200);
        assert!(excerpt.text.starts_with("line 0 é\nline 1 é\n"));
        assert!(excerpt.text.ends_with("line 99999 é\nlast"));
        let (head, rest) = excerpt.text.split_once("\n[... ").unwrap();
        let (bytes, rest) = rest.split_once(" bytes, ").unwrap();
        let (_, tail) = rest.split_once("...]\n").unwrap();
        let bytes: usize = bytes.parse().unwrap();
        assert_eq!(head.len() + bytes + tail.len(), total + 4);
        // The memory is bounded too.
        assert!(text.head.len() + text.tail.capacity() < 12 * MAX_OUTPUT);
    }

    #[test]
    fn one_long_chunk_is_shortened_too() {
        let excerpt = BoundedText::default().excerpt_with(&"ö".repeat(40_000));
        assert!(excerpt.is_cut);
        assert!(excerpt.text.len() < MAX_OUTPUT + 200);
    }
}
