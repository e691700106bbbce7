//! The two users of an instance, and their paths.

use sandyard_wire::{Code, ConnectError};

use crate::agent::Result;

/// Maximum length of a path.
const PATH_MAX: usize = 4096;

/// A user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) name: &'static str,
    pub(super) id: u32,
    pub(super) home: &'static str,
}

const ACCOUNTS: [Account; 2] = [
    Account {
        name: "user",
        id: 1000,
        home: "/home/user",
    },
    Account {
        name: "root",
        id: 0,
        home: "/root",
    },
];

impl Account {
    pub(super) fn find(name: &str) -> Result<Self> {
        let found = ACCOUNTS.into_iter().find(|account| account.name == name);
        found.ok_or_else(|| {
            // COMPAT(e2b): the SDK's tests expect this text.
            ConnectError::new(Code::Unauthenticated, format!("invalid username: '{name}'"))
        })
    }

    /// Makes a path absolute and clean: relative paths start at the home directory, as does `~`.
    pub(super) fn resolve(&self, path: &str) -> Result<String> {
        resolve(path, self.home, self.home)
    }
}

/// Makes a path absolute and clean; relative paths start at `from`.
pub(super) fn resolve(path: &str, from: &str, home: &str) -> Result<String> {
    if path.contains('\0') {
        return Err(ConnectError::invalid_argument("path contains a NUL byte"));
    }
    let (start, rest) = match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => (home, rest),
        _ if path.starts_with('/') => ("", path),
        _ => (from, path),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in start.split('/').chain(rest.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let clean = format!("/{}", parts.join("/"));
    if clean.len() >= PATH_MAX {
        return Err(ConnectError::invalid_argument("path is too long"));
    }
    Ok(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_start_at_home_unless_absolute() {
        let user = Account::find("user").unwrap();
        for (path, meaning) in [
            ("", "/home/user"),
            ("~", "/home/user"),
            ("~/a", "/home/user/a"),
            ("a/../b", "/home/user/b"),
            ("/etc/../../x/", "/x"),
            ("~other", "/home/user/~other"),
            ("/", "/"),
        ] {
            assert_eq!(user.resolve(path).unwrap(), meaning, "{path}");
        }
        assert!(user.resolve("a\0b").is_err());
        assert!(user.resolve(&"x".repeat(5000)).is_err());
        assert!(Account::find("nobody").is_err());
    }
}
