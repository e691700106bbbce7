//! A range of lines of a text of any length, read as a stream: only the range is held in memory.

/// Longest piece, in bytes.
const MAX_PIECE: usize = 256 << 10;

/// Takes some lines out of a text.
#[derive(Debug)]
pub(super) struct Piece {
    first: usize,
    max_lines: usize,
    /// Lines that come before.
    skipped: usize,
    text: Vec<u8>,
    /// Bytes of complete lines, and their number.
    complete_bytes: usize,
    line_count: usize,
    /// No more lines are added.
    is_full: bool,
    /// The text continues after the range.
    has_more: bool,
    /// Ends of lines in all, and whether something came after the last.
    ends: usize,
    is_open: bool,
}

/// Lines of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LineRange {
    pub(super) text: String,
    /// How many lines there are in all.
    pub(super) lines: usize,
    /// The line after it, if there is one.
    pub(super) next: Option<usize>,
    /// Whether there is more.
    pub(super) is_cut: bool,
}

/// The piece is not UTF-8.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotText;

impl Piece {
    /// Up to `max_lines` lines from the `first` on, within the maximum size. Of a line that exceeds that size alone, its beginning.
    pub(super) fn new(first: usize, max_lines: usize) -> Self {
        Self {
            first,
            max_lines,
            skipped: 0,
            text: Vec::new(),
            complete_bytes: 0,
            line_count: 0,
            is_full: max_lines == 0,
            has_more: false,
            ends: 0,
            is_open: false,
        }
    }

    /// Takes what comes next.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else {
            return;
        };
        self.is_open = *last != b'\n';
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let is_ended = line.ends_with(b"\n");
            self.ends += usize::from(is_ended);
            if self.skipped + 1 < self.first {
                self.skipped += usize::from(is_ended);
            } else {
                self.take(line, is_ended);
            }
        }
    }

    fn take(&mut self, line: &[u8], is_ended: bool) {
        if self.is_full {
            self.has_more = true;
            return;
        }
        let fits = line.len().min(MAX_PIECE - self.text.len());
        self.text.extend_from_slice(&line[..fits]);
        if fits < line.len() {
            (self.is_full, self.has_more) = (true, true);
        } else if is_ended {
            self.complete_bytes = self.text.len();
            self.line_count += 1;
            self.is_full = self.line_count == self.max_lines;
        }
    }

    /// The range of a text that has ended.
    pub(super) fn finish(mut self) -> Result<LineRange, NotText> {
        // A last line without an end, or as much of the only one as fits.
        let is_part = self.is_full && self.line_count == 0;
        if !self.is_full || is_part {
            self.line_count += usize::from(self.complete_bytes < self.text.len());
            self.complete_bytes = self.text.len();
        }
        let is_cut = self.has_more || self.complete_bytes < self.text.len();
        self.text.truncate(self.complete_bytes);
        let text = String::from_utf8(self.text).or_else(|error| {
            let fault = error.utf8_error();
            let mut bytes = error.into_bytes();
            // A character may have been cut in two.
            if !is_part || fault.error_len().is_some() {
                return Err(NotText);
            }
            bytes.truncate(fault.valid_up_to());
            String::from_utf8(bytes).map_err(|_| NotText)
        })?;
        let lines = self.ends + usize::from(self.is_open);
        let next = self.first + self.line_count;
        Ok(LineRange {
            text,
            lines,
            next: (next <= lines).then_some(next),
            is_cut,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same however the text comes.
    fn piece(text: impl AsRef<[u8]>, first: usize, max_lines: usize) -> Result<LineRange, NotText> {
        let all = [1, 3, 1 << 16, usize::MAX].map(|size| {
            let mut piece = Piece::new(first, max_lines);
            for part in text.as_ref().chunks(size.min(text.as_ref().len().max(1))) {
                piece.push(part);
            }
            piece.finish()
        });
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
        all.into_iter().next().unwrap()
    }

    fn read(text: &str, first: usize, max_lines: usize) -> (String, usize, Option<usize>, bool) {
        let range = piece(text, first, max_lines).unwrap();
        (range.text, range.lines, range.next, range.is_cut)
    }

    #[test]
    fn a_text_is_read_in_pieces() {
        let all = usize::MAX;
        assert_eq!(read("a\nb\nc", 1, all), ("a\nb\nc".into(), 3, None, false));
        assert_eq!(read("a\nb\nc", 2, 1), ("b\n".into(), 3, Some(3), true));
        assert_eq!(read("a\nb\n", 1, 2), ("a\nb\n".into(), 2, None, false));
        assert_eq!(read("a\n", 9, 1), (String::new(), 1, None, false));
        assert_eq!(read("", 1, all), (String::new(), 0, None, false));
        assert_eq!(read("\n\nx", 3, all), ("x".into(), 3, None, false));
    }

    #[test]
    fn a_piece_has_a_maximum_size() {
        let all = usize::MAX;
        let long = "ä".repeat(MAX_PIECE);
        let cut = piece(format!("a{long}"), 1, all).unwrap();
        assert!(cut.is_cut && cut.next.is_none());
        assert_eq!(cut.text.len(), MAX_PIECE - 1, "half a character is none");
        let two = format!("{}\n{}", "a".repeat(MAX_PIECE - 1), "b");
        let first = piece(&two, 1, all).unwrap();
        assert_eq!((first.text.len(), first.next), (MAX_PIECE, Some(2)));
        let second = format!("x\n{long}\ny");
        assert_eq!(read(&second, 1, all), ("x\n".into(), 3, Some(2), true));
        assert_eq!(piece(&second, 2, all).unwrap().next, Some(3));
    }

    #[test]
    fn only_the_piece_must_be_text() {
        assert_eq!(piece(b"a\xff\n", 1, 1), Err(NotText));
        assert_eq!(piece(b"a\xc3", 1, 1), Err(NotText));
        assert_eq!(piece(b"a\n\xff\n", 1, 1).unwrap().text, "a\n");
    }
}
