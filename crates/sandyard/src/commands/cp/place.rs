//! Where a copy comes from or goes to.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

/// One side of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Standard input or output.
    Standard,
    /// A path of this host.
    Here(PathBuf),
    /// A path in a sandbox.
    Sandbox {
        /// Its id or name.
        id: String,
        /// Where inside.
        path: String,
    },
}

impl FromStr for Place {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        if text == "-" {
            return Ok(Self::Standard);
        }
        // Ids and names have no slash, so `./a:b` and `/a:b` are files.
        match text.split_once(':') {
            Some((id, path)) if !id.is_empty() && !id.contains(['/', '.']) => Ok(Self::Sandbox {
                id: id.to_owned(),
                path: match path {
                    // The home inside.
                    "" => ".".to_owned(),
                    path => path.to_owned(),
                },
            }),
            _ => Ok(Self::Here(PathBuf::from(text))),
        }
    }
}

/// The last name of a path inside; none for `/`, `.` and `..`.
pub(super) fn last_name(path: &str) -> Option<&str> {
    let name = path.trim_end_matches('/').rsplit('/').next()?;
    (!matches!(name, "" | "." | "..")).then_some(name)
}

/// A path one level deeper.
pub(super) fn joined(folder: &str, name: &str) -> String {
    format!("{}/{name}", folder.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> Place {
        text.parse().unwrap()
    }

    fn inside(id: &str, path: &str) -> Place {
        Place::Sandbox {
            id: id.to_owned(),
            path: path.to_owned(),
        }
    }

    #[test]
    fn a_colon_behind_a_name_means_a_sandbox() {
        assert_eq!(place("abc123:/etc/hosts"), inside("abc123", "/etc/hosts"));
        assert_eq!(place("my-box:out/a:b"), inside("my-box", "out/a:b"));
        assert_eq!(place("abc:"), inside("abc", "."));
    }

    #[test]
    fn everything_else_is_here() {
        for text in ["file", "./a:b", "/a:b", "../x:y", ":x", "dir/"] {
            assert_eq!(place(text), Place::Here(text.into()), "{text}");
        }
        assert_eq!(place("-"), Place::Standard);
    }

    #[test]
    fn names_and_paths_inside() {
        assert_eq!(last_name("/a/b/"), Some("b"));
        assert_eq!(last_name("b"), Some("b"));
        assert_eq!(
            (last_name("/"), last_name("."), last_name("a/..")),
            (None, None, None)
        );
        assert_eq!(joined("/", "x"), "/x");
        assert_eq!(joined("a/", "x"), "a/x");
    }
}
