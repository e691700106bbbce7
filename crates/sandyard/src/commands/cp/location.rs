//! Source or target of a copy.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

/// Source or target of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Location {
    /// Standard input or output.
    Stdio,
    /// A path on this host.
    Host(PathBuf),
    /// A path in a sandbox.
    Sandbox {
        /// ID or name of the sandbox.
        id: String,
        /// Path in the sandbox.
        path: String,
    },
}

impl FromStr for Location {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        if text == "-" {
            return Ok(Self::Stdio);
        }
        // IDs and names contain no slash, so `./a:b` and `/a:b` are files.
        match text.split_once(':') {
            Some((id, path)) if !id.is_empty() && !id.contains(['/', '.']) => Ok(Self::Sandbox {
                id: id.to_owned(),
                path: match path {
                    // The home directory.
                    "" => ".".to_owned(),
                    path => path.to_owned(),
                },
            }),
            _ => Ok(Self::Host(PathBuf::from(text))),
        }
    }
}

/// The last component of a path in a sandbox; none for `/`, `.` and `..`.
pub(super) fn last_name(path: &str) -> Option<&str> {
    let name = path.trim_end_matches('/').rsplit('/').next()?;
    (!matches!(name, "" | "." | "..")).then_some(name)
}

/// Appends a name to a path in a sandbox.
pub(super) fn join(folder: &str, name: &str) -> String {
    format!("{}/{name}", folder.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(text: &str) -> Location {
        text.parse().unwrap()
    }

    fn in_sandbox(id: &str, path: &str) -> Location {
        Location::Sandbox {
            id: id.to_owned(),
            path: path.to_owned(),
        }
    }

    #[test]
    fn a_name_with_a_colon_is_a_sandbox() {
        assert_eq!(
            location("abc123:/etc/hosts"),
            in_sandbox("abc123", "/etc/hosts")
        );
        assert_eq!(location("my-box:out/a:b"), in_sandbox("my-box", "out/a:b"));
        assert_eq!(location("abc:"), in_sandbox("abc", "."));
    }

    #[test]
    fn everything_else_is_on_this_host() {
        for text in ["file", "./a:b", "/a:b", "../x:y", ":x", "dir/"] {
            assert_eq!(location(text), Location::Host(text.into()), "{text}");
        }
        assert_eq!(location("-"), Location::Stdio);
    }

    #[test]
    fn paths_in_a_sandbox_are_split_and_joined() {
        assert_eq!(last_name("/a/b/"), Some("b"));
        assert_eq!(last_name("b"), Some("b"));
        assert_eq!(
            (last_name("/"), last_name("."), last_name("a/..")),
            (None, None, None)
        );
        assert_eq!(join("/", "x"), "/x");
        assert_eq!(join("a/", "x"), "a/x");
    }
}
