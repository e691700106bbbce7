//! Some lines of a text of any length, as it comes: no more of it is held than is told.

/// Longest piece, in bytes.
const MAX_PIECE: usize = 256 << 10;

/// Takes some lines out of a text.
#[derive(Debug)]
pub(super) struct Piece {
    first: usize,
    most: usize,
    /// Lines that come before.
    skipped: usize,
    text: Vec<u8>,
    /// Bytes of it that are whole lines, and how many.
    whole: usize,
    taken: usize,
    /// Nothing more is taken.
    is_full: bool,
    /// Something came after what was taken.
    has_more: bool,
    /// Ends of lines in all, and whether something came after the last.
    ends: usize,
    is_open: bool,
}

/// What was taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Taken {
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
    /// Up to `most` lines from the `first` on, and no more than fits. Of a line that does not fit by itself, its beginning.
    pub(super) fn new(first: usize, most: usize) -> Self {
        Self {
            first,
            most,
            skipped: 0,
            text: Vec::new(),
            whole: 0,
            taken: 0,
            is_full: most == 0,
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
            self.whole = self.text.len();
            self.taken += 1;
            self.is_full = self.taken == self.most;
        }
    }

    /// What was taken of a text that has ended.
    pub(super) fn finish(mut self) -> Result<Taken, NotText> {
        // A last line without an end, or as much of the only one as fits.
        let is_part = self.is_full && self.taken == 0;
        if !self.is_full || is_part {
            self.taken += usize::from(self.whole < self.text.len());
            self.whole = self.text.len();
        }
        let is_cut = self.has_more || self.whole < self.text.len();
        self.text.truncate(self.whole);
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
        let next = self.first + self.taken;
        Ok(Taken {
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
    fn piece(text: impl AsRef<[u8]>, first: usize, most: usize) -> Result<Taken, NotText> {
        let all = [1, 3, 1 << 16, usize::MAX].map(|size| {
            let mut piece = Piece::new(first, most);
            for part in text.as_ref().chunks(size.min(text.as_ref().len().max(1))) {
                piece.push(part);
            }
            piece.finish()
        });
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
        all.into_iter().next().unwrap()
    }

    fn told(text: &str, first: usize, most: usize) -> (String, usize, Option<usize>, bool) {
        let taken = piece(text, first, most).unwrap();
        (taken.text, taken.lines, taken.next, taken.is_cut)
    }

    #[test]
    fn a_text_is_told_in_pieces() {
        let all = usize::MAX;
        assert_eq!(told("a\nb\nc", 1, all), ("a\nb\nc".into(), 3, None, false));
        assert_eq!(told("a\nb\nc", 2, 1), ("b\n".into(), 3, Some(3), true));
        assert_eq!(told("a\nb\n", 1, 2), ("a\nb\n".into(), 2, None, false));
        assert_eq!(told("a\n", 9, 1), (String::new(), 1, None, false));
        assert_eq!(told("", 1, all), (String::new(), 0, None, false));
        assert_eq!(told("\n\nx", 3, all), ("x".into(), 3, None, false));
    }

    #[test]
    fn no_more_is_told_than_fits() {
        let all = usize::MAX;
        let long = "ä".repeat(MAX_PIECE);
        let cut = piece(format!("a{long}"), 1, all).unwrap();
        assert!(cut.is_cut && cut.next.is_none());
        assert_eq!(cut.text.len(), MAX_PIECE - 1, "half a character is none");
        let two = format!("{}\n{}", "a".repeat(MAX_PIECE - 1), "b");
        let first = piece(&two, 1, all).unwrap();
        assert_eq!((first.text.len(), first.next), (MAX_PIECE, Some(2)));
        let second = format!("x\n{long}\ny");
        assert_eq!(told(&second, 1, all), ("x\n".into(), 3, Some(2), true));
        assert_eq!(piece(&second, 2, all).unwrap().next, Some(3));
    }

    #[test]
    fn only_what_is_told_has_to_be_text() {
        assert_eq!(piece(b"a\xff\n", 1, 1), Err(NotText));
        assert_eq!(piece(b"a\xc3", 1, 1), Err(NotText));
        assert_eq!(piece(b"a\n\xff\n", 1, 1).unwrap().text, "a\n");
    }
}
