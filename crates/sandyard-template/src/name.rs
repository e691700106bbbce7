//! Which strings are template names.

use crate::error::{Result, TemplateError};

/// Longest template name.
const MAX_LEN: usize = 64;

/// Says whether `name` can name a template: `[a-z0-9][a-z0-9._-]{0,63}`.
///
/// Names become file names, so this is what stands between a tag from the network and the file system: no separator, no
/// leading dot, nothing a shell or a terminal would read specially.
pub fn is_valid_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    bytes.first().is_some_and(plain)
        && bytes.len() <= MAX_LEN
        && bytes
            .iter()
            .all(|byte| plain(byte) || matches!(byte, b'.' | b'_' | b'-'))
}

/// Refuses what is not a template name.
pub(crate) fn check(name: &str) -> Result<()> {
    if is_valid_name(name) {
        return Ok(());
    }
    Err(TemplateError::BadName {
        name: name.chars().take(80).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::is_valid_name;

    #[test]
    fn usual_names_are_valid() {
        for name in ["host", "debian", "a", "9", "node-20.1_x", &"a".repeat(64)] {
            assert!(is_valid_name(name), "{name}");
        }
    }

    #[test]
    fn names_that_would_lead_elsewhere_are_not() {
        let long = "a".repeat(65);
        for name in [
            "", ".", "..", "../x", "a/b", "/etc", ".hidden", "-rf", "_x", "A", "a b", "a\0b", "ä",
            "a\n", &long,
        ] {
            assert!(!is_valid_name(name), "{name:?}");
        }
    }
}
