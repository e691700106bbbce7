//! Text from sandboxes, made harmless for terminals.

use std::borrow::Cow;

/// Writes control characters out, so that a file name cannot move the reader's cursor or retitle the window.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let written = text.chars().fold(String::new(), |mut written, c| {
        match is_control(c) {
            true => written.extend(c.escape_default()),
            false => written.push(c),
        }
        written
    });
    Cow::Owned(written)
}

/// Control characters, and those that turn the direction of writing.
fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_not_driven_by_names() {
        assert_eq!(visible("plain é 你"), "plain é 你");
        assert_eq!(visible("a\x1b]0;x\x07b\nc"), "a\\u{1b}]0;x\\u{7}b\\nc");
        assert_eq!(visible("\u{202e}txt.exe"), "\\u{202e}txt.exe");
    }
}
