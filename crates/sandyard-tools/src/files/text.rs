//! Line endings and byte order marks.

/// The byte order mark that some editors put before UTF-8.
pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';

/// How the lines of a text end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// `\n`, or mixed.
    Lf,
    /// Every line ends with `\r\n`.
    CrLf,
}

impl Ending {
    /// The line ending of a text.
    pub(crate) fn of(text: &str) -> Self {
        let mut has_lines = false;
        for (at, _) in text.match_indices('\n') {
            if !text[..at].ends_with('\r') {
                return Self::Lf;
            }
            has_lines = true;
        }
        if has_lines { Self::CrLf } else { Self::Lf }
    }
}

/// Converts all line endings to `\r\n`.
pub(crate) fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}
