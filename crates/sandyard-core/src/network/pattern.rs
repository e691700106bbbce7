//! Names with wildcards.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Longest name, its dots counted.
const MAX_NAME_BYTES: usize = 253;

/// Longest part of a name between dots.
const MAX_LABEL_BYTES: usize = 63;

/// A host's name, or a wildcard for the names below one.
///
/// `example.com` is that name alone. `*.example.com` is every name below it, at any depth, and not the name itself. `*` is
/// every name. Case does not count, nor a dot at the end. Addresses are no names: none is written as a pattern, none is
/// matched by one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostPattern(String);

/// A text that is not a valid host pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a valid host name: write `example.com`, `*.example.com` or `*`{hint}", hint = ascii_hint(.0))]
pub struct PatternError(pub String);

impl HostPattern {
    /// Says whether it stands for this name, which is in lower case and has no dot at its end.
    pub fn matches(&self, name: &str) -> bool {
        // Callers bring names into one form first. A deny that one forgotten call would get around is too weak, so this looks
        // past case and the last dot all the same.
        let name = name.strip_suffix('.').unwrap_or(name);
        if name.is_empty() || is_address_text(name) {
            return false;
        }
        match self.0.strip_prefix('*') {
            None => name.eq_ignore_ascii_case(&self.0),
            Some(tail) => {
                let (name, tail) = (name.as_bytes(), tail.as_bytes());
                name.len() > tail.len()
                    && name[name.len() - tail.len()..].eq_ignore_ascii_case(tail)
            }
        }
    }

    /// Says whether it stands for every name.
    pub fn is_every_name(&self) -> bool {
        self.0 == "*"
    }

    /// Says whether it stands for more than one name.
    pub fn is_wildcard(&self) -> bool {
        self.0.starts_with('*')
    }

    /// The pattern as written, in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HostPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "*" {
            return Ok(Self(text.to_owned()));
        }
        let (wildcard, name) = match text.strip_prefix("*.") {
            Some(name) => ("*.", name),
            None => ("", text),
        };
        match canonical_name(name) {
            Some(name) => Ok(Self(format!("{wildcard}{name}"))),
            None => Err(PatternError(text.to_owned())),
        }
    }
}

impl TryFrom<String> for HostPattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<HostPattern> for String {
    fn from(pattern: HostPattern) -> Self {
        pattern.0
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Brings a name into the form that is compared: lower case, no dot at its end; `None` when it is not a valid host name.
///
/// Not valid are: empty, a label over 63 bytes, over 253 in all, anything but letters, digits, `-`, `_` and dots. A text that
/// ends in a number is not a name either: `127.1` and `0x7f.0.0.1` are addresses to many programs, and no top-level domain is a number.
pub fn canonical_name(name: &str) -> Option<String> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_fine =
        name.len() <= MAX_NAME_BYTES && name.split('.').all(is_label) && !is_address_text(name);
    is_fine.then(|| name.to_ascii_lowercase())
}

/// What to add to an error about a text that is not ASCII.
pub(super) fn ascii_hint(text: &str) -> &'static str {
    if text.is_ascii() {
        ""
    } else {
        "; names with other letters than a to z are written in punycode, as `xn--bcher-kva.example`"
    }
}

fn is_label(label: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !label.is_empty() && label.len() <= MAX_LABEL_BYTES && label.bytes().all(is_fine)
}

/// Says whether some program would take this for an address, in any of the spellings of `inet_aton`.
fn is_address_text(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let is_decimal = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
    let is_hex = last
        .strip_prefix("0x")
        .or_else(|| last.strip_prefix("0X"))
        .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    is_decimal || is_hex || name.contains(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> HostPattern {
        text.parse().expect("a pattern")
    }

    #[test]
    fn a_plain_name_matches_itself_alone() {
        let plain = pattern("Example.COM.");
        assert_eq!(plain.as_str(), "example.com");
        assert!(plain.matches("example.com"));
        for other in [
            "www.example.com",
            "example.com.org",
            "xexample.com",
            "com",
            "",
        ] {
            assert!(!plain.matches(other), "{other}");
        }
    }

    #[test]
    fn a_wildcard_matches_every_depth_below_and_not_the_name_itself() {
        let below = pattern("*.example.com");
        assert!(below.is_wildcard() && !below.is_every_name());
        assert!(below.matches("a.example.com"));
        assert!(below.matches("a.b.example.com"));
        for other in [
            "example.com",
            ".example.com",
            "badexample.com",
            "a.example.com.evil.org",
        ] {
            assert!(!below.matches(other), "{other}");
        }
    }

    #[test]
    fn a_star_matches_every_name_and_no_address() {
        let every = pattern("*");
        assert!(every.is_every_name());
        assert!(every.matches("example.com") && every.matches("localhost"));
        for address in [
            "10.0.0.1",
            "127.1",
            "0x7f.1",
            "0x7f000001",
            "2130706433",
            "::1",
            "10.0.0.1.",
            "",
        ] {
            assert!(!every.matches(address), "{address}");
        }
    }

    #[test]
    fn case_and_a_last_dot_do_not_get_around_a_pattern() {
        assert!(pattern("example.com").matches("EXAMPLE.com."));
        assert!(pattern("*.example.com").matches("A.Example.Com."));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        let long_label = format!("{}.com", "a".repeat(64));
        let long_name = format!("{}com", "abcdefg.".repeat(32));
        for text in [
            "",
            ".",
            "*.",
            "**",
            "*.*",
            "a.*.com",
            "a*.com",
            "*a.com",
            "*example.com",
            "a..com",
            ".a.com",
            "a.com..",
            "10.0.0.1",
            "::1",
            "1.2.3",
            "0x7f.1",
            "a b.com",
            "a.com:80",
            "a.com/x",
            "http://a.com",
            "bücher.example",
            "a.com\n",
            &long_label,
            &long_name,
        ] {
            assert_eq!(
                text.parse::<HostPattern>(),
                Err(PatternError(text.to_owned()))
            );
        }
    }

    #[test]
    fn errors_about_other_alphabets_mention_punycode() {
        let message = |text: &str| text.parse::<HostPattern>().expect_err(text).to_string();
        assert!(message("bücher.example").contains("punycode"));
        assert!(!message("a..b").contains("punycode"));
        assert!(pattern("xn--bcher-kva.example").matches("xn--bcher-kva.example"));
    }

    #[test]
    fn names_have_one_form() {
        assert_eq!(
            canonical_name("WWW.Example.com."),
            Some("www.example.com".to_owned())
        );
        assert_eq!(
            canonical_name("_ldap._tcp.corp"),
            Some("_ldap._tcp.corp".to_owned())
        );
        assert_eq!(
            canonical_name("1.0.0.127.in-addr.arpa"),
            Some("1.0.0.127.in-addr.arpa".to_owned())
        );
        assert_eq!(canonical_name(&"a".repeat(63)), Some("a".repeat(63)));
        for name in [
            "",
            ".",
            "*.a.com",
            "*",
            "10.0.0.1",
            "a b",
            "ä.com",
            &"a".repeat(64),
        ] {
            assert_eq!(canonical_name(name), None, "{name}");
        }
    }
}
