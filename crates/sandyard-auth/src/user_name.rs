//! Names of users.

use sandyard_core::Caller;

use crate::error::{AuthError, Result};

/// Longest name, in bytes.
const MAX_LEN: usize = 63;

/// Parses a name: `[a-z0-9][a-z0-9._-]{0,62}`, after conversion to lower case.
pub(crate) fn parse(text: &str) -> Option<String> {
    if text.is_empty() || text.len() > MAX_LEN {
        return None;
    }
    let name = text.to_ascii_lowercase();
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_valid = is_plain(name.as_bytes()[0])
        && name
            .bytes()
            .all(|byte| is_plain(byte) || b"._-".contains(&byte));
    is_valid.then_some(name)
}

/// Parses the name of a new user. The names of built-in callers are reserved: a user with such a name would own their sandboxes.
pub(crate) fn parse_new(text: &str) -> Result<String> {
    let name = parse(text).ok_or(AuthError::Invalid {
        field: "name",
        detail: "must have 1 to 63 letters, digits, dots, dashes and underscores, and must begin with a letter or digit",
    })?;
    if [Caller::local().name, Caller::system().name].contains(&name) {
        return Err(AuthError::Invalid {
            field: "name",
            detail: "must not be `local` or `system`",
        });
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lower_cased() {
        assert_eq!(parse("Alice.B-1_x").as_deref(), Some("alice.b-1_x"));
    }

    #[test]
    fn invalid_names_are_refused() {
        for text in [
            "",
            "-a",
            ".a",
            "_a",
            "a b",
            "a/b",
            "é",
            "a\0",
            "K\u{212a}",
            &"a".repeat(64),
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
        assert!(parse(&"a".repeat(63)).is_some());
    }

    #[test]
    fn reserved_names_are_refused() {
        assert!(parse_new("Local").is_err() && parse_new("system").is_err());
        assert!(parse_new("locals").is_ok());
    }
}
