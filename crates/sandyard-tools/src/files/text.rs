//! Ends of lines and marks at the start of a text.

/// The mark some editors put before UTF-8.
pub(crate) const BYTE_ORDER_MARK: char = '\u{feff}';

/// How the lines of a text end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// As everywhere but on Windows; also when they are mixed.
    Lf,
    /// Every line ends as on Windows.
    CrLf,
}

impl Ending {
    /// Of a text.
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

/// With every line's end as on Windows.
pub(crate) fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}
