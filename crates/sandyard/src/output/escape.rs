//! Escaping of untrusted text for terminals.

use std::borrow::Cow;

/// Escapes control characters, so that a file name cannot move the cursor or change the window's title.
pub(crate) fn escape_control(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::new();
    for c in text.chars() {
        match is_control(c) {
            true => escaped.extend(c.escape_default()),
            false => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

/// Returns whether a character is a control character or changes the writing direction.
fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(escape_control("plain é 你"), "plain é 你");
        assert_eq!(
            escape_control("a\x1b]0;x\x07b\nc"),
            "a\\u{1b}]0;x\\u{7}b\\nc"
        );
        assert_eq!(escape_control("\u{202e}txt.exe"), "\\u{202e}txt.exe");
    }
}
