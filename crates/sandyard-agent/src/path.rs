//! Paths as clients write them, and what they mean for a user.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use sandyard_wire::ConnectError;

use crate::settings::Settings;
use crate::user::Account;

/// Longest path the kernel takes, its final NUL included.
const PATH_MAX: usize = 4096;

/// Turns a client's path into an absolute one: `~` is the user's home, relative paths start there, and an empty path is
/// where commands start by default.
pub(crate) fn resolve(
    path: &str,
    account: &Account,
    settings: &Settings,
) -> Result<PathBuf, ConnectError> {
    if path.contains('\0') {
        return Err(ConnectError::invalid_argument("path contains a NUL byte"));
    }
    if path.len() >= PATH_MAX {
        return Err(ConnectError::invalid_argument("path is too long"));
    }
    let home = account.home.as_path();
    let absolute = match path.strip_prefix('~') {
        Some("") => home.to_owned(),
        Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ if path.is_empty() => settings
            .default_workdir
            .as_ref()
            .map_or(home.to_owned(), PathBuf::from),
        _ => home.join(path),
    };
    Ok(normalise(&absolute))
}

/// Removes `.` and `..` by looking at the text alone, as clients do when they compare paths.
fn normalise(path: &Path) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => {
                clean.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    clean
}

/// A path as the kernel takes it.
pub(crate) fn to_c(path: &Path) -> Result<CString, ConnectError> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| ConnectError::invalid_argument("path contains a NUL byte"))
}

/// The last component of a path, whatever bytes it is made of.
pub(crate) fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(path: &str) -> PathBuf {
        let account = Account {
            name: "user".into(),
            uid: 1000,
            gid: 1000,
            home: "/home/user".into(),
            shell: "/bin/sh".into(),
        };
        resolve(path, &account, &Settings::default()).unwrap()
    }

    #[test]
    fn paths_start_at_home_unless_absolute() {
        for (path, meaning) in [
            ("~", "/home/user"),
            ("~/a", "/home/user/a"),
            ("~//a", "/home/user/a"),
            ("a/b", "/home/user/a/b"),
            ("./a/../b", "/home/user/b"),
            ("/etc/../../x/", "/x"),
            ("", "/home/user"),
            ("~other", "/home/user/~other"),
        ] {
            assert_eq!(resolved(path), Path::new(meaning), "{path}");
        }
    }

    #[test]
    fn a_nul_byte_is_refused() {
        let account = Account {
            name: String::new(),
            uid: 0,
            gid: 0,
            home: "/".into(),
            shell: String::new(),
        };
        assert!(resolve("a\0b", &account, &Settings::default()).is_err());
    }
}
