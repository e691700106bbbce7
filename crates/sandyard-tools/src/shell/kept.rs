//! Text without end, kept within bounds: its beginning and its end.

/// Most characters of output in one reply.
pub(super) const MAX_OUTPUT: usize = 30_000;
/// How much of the beginning is kept of what is longer.
const HEAD: usize = 10_000;
/// How much of the end.
const TAIL: usize = MAX_OUTPUT - HEAD;

/// The beginning and the end of a text.
#[derive(Debug, Default, Clone)]
pub(super) struct Kept {
    head: String,
    tail: String,
    /// Bytes and lines that were between them and are gone.
    lost: (u64, u64),
}

/// A text within bounds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// The text, which says what was cut.
    pub(super) text: String,
    /// Whether something was.
    pub(super) is_cut: bool,
}

impl Kept {
    /// Adds to the end.
    pub(super) fn push(&mut self, mut text: &str) {
        if self.tail.is_empty() && self.lost.0 == 0 {
            let fits = text.floor_char_boundary(HEAD.saturating_sub(self.head.len()));
            self.head.push_str(&text[..fits]);
            text = &text[fits..];
        }
        self.tail.push_str(text);
        // Not every time: what is thrown away is moved over.
        if self.tail.len() > 4 * TAIL {
            let cut = self.tail.floor_char_boundary(self.tail.len() - 2 * TAIL);
            self.lost.0 += cut as u64;
            self.lost.1 += lines_of(&self.tail[..cut]);
            self.tail.drain(..cut);
        }
    }

    /// All of it with this after it, as far as it may be shown.
    pub(super) fn shown_with(&self, after: &str) -> Shown {
        let is_whole =
            self.lost.0 == 0 && self.head.len() + self.tail.len() + after.len() <= MAX_OUTPUT;
        if is_whole {
            return Shown {
                text: format!("{}{}{after}", self.head, self.tail),
                is_cut: false,
            };
        }
        let rest = format!("{}{after}", self.tail);
        if self.lost.0 == 0 {
            // The beginning may be short, with all the length in what comes after.
            let whole = format!("{}{rest}", self.head);
            let head = whole.floor_char_boundary(HEAD);
            let tail = whole.ceil_char_boundary(whole.len() - TAIL).max(head);
            return joined(&whole[..head], &whole[head..tail], (0, 0), &whole[tail..]);
        }
        let tail = rest.ceil_char_boundary(rest.len().saturating_sub(TAIL));
        joined(&self.head, &rest[..tail], self.lost, &rest[tail..])
    }
}

fn joined(head: &str, gone: &str, lost: (u64, u64), tail: &str) -> Shown {
    let bytes = lost.0 + gone.len() as u64;
    let lines = lost.1 + lines_of(gone);
    Shown {
        text: format!(
            "{head}\n[... cut here: {bytes} bytes, {lines} lines; write long output to a file and read parts of it ...]\n{tail}"
        ),
        is_cut: true,
    }
}

fn lines_of(text: &str) -> u64 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_text_is_whole() {
        let mut kept = Kept::default();
        for _ in 0..2_999 {
            kept.push("é23456789");
        }
        let shown = kept.shown_with("end");
        assert!(!shown.is_cut);
        assert_eq!(shown.text.len(), 29_993);
        assert!(shown.text.starts_with("é2345") && shown.text.ends_with("89end"));
    }

    #[test]
    fn long_text_keeps_both_ends_and_every_byte_is_accounted_for() {
        let mut kept = Kept::default();
        let mut whole = 0;
        for number in 0..100_000 {
            let line = format!("line {number} é\n");
            whole += line.len();
            kept.push(&line);
        }
        let shown = kept.shown_with("last");
        assert!(shown.is_cut);
        assert!(shown.text.len() < MAX_OUTPUT + 200);
        assert!(shown.text.starts_with("line 0 é\nline 1 é\n"));
        assert!(shown.text.ends_with("line 99999 é\nlast"));
        let (head, rest) = shown.text.split_once("\n[... cut here: ").unwrap();
        let (bytes, rest) = rest.split_once(" bytes, ").unwrap();
        let (_, tail) = rest.split_once("...]\n").unwrap();
        let bytes: usize = bytes.parse().unwrap();
        assert_eq!(head.len() + bytes + tail.len(), whole + 4);
        // What is held is bounded as well.
        assert!(kept.head.len() + kept.tail.capacity() < 12 * MAX_OUTPUT);
    }

    #[test]
    fn one_long_piece_is_cut_too() {
        let shown = Kept::default().shown_with(&"ö".repeat(40_000));
        assert!(shown.is_cut);
        assert!(shown.text.len() < MAX_OUTPUT + 200);
    }
}
