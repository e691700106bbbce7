//! Clients' paths, resolved for a user.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use sandyard_wire::ConnectError;

use crate::settings::Settings;
use crate::user::Account;
use crate::workdir;

/// Maximum length of a path in the kernel, including the final NUL.
const PATH_MAX: usize = 4096;

/// Turns a client's path into an absolute one: `~` is the user's home, relative paths start there or in the sandbox's common
/// directory, and an empty path is where commands start by default.
pub(crate) fn resolve(
    path: &str,
    account: &Account,
    settings: &Settings,
) -> Result<PathBuf, ConnectError> {
    if path.contains('\0') {
        return Err(ConnectError::invalid_argument("path contains a NUL byte"));
    }
    let home = account.home.as_path();
    let absolute = match path.strip_prefix('~') {
        Some("") => home.to_owned(),
        Some(rest) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ if path.is_empty() => workdir::common(settings, account)
            .or_else(|| settings.default_workdir.as_ref().map(PathBuf::from))
            .unwrap_or_else(|| home.to_owned()),
        _ if path.starts_with('/') => PathBuf::from(path),
        _ => workdir::common(settings, account)
            .unwrap_or_else(|| home.to_owned())
            .join(path),
    };
    let clean = normalise(&absolute);
    if clean.as_os_str().len() >= PATH_MAX {
        return Err(ConnectError::invalid_argument("path is too long"));
    }
    Ok(clean)
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

/// A path as a C string.
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

    fn try_resolve(path: &str) -> Result<PathBuf, ConnectError> {
        let account = Account {
            name: "user".into(),
            uid: 1000,
            gid: 1000,
            home: "/home/user".into(),
            shell: "/bin/sh".into(),
        };
        resolve(path, &account, &Settings::default())
    }

    fn resolved(path: &str) -> PathBuf {
        try_resolve(path).unwrap()
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
        assert!(try_resolve("a\0b").is_err());
    }

    #[test]
    fn the_limit_applies_to_the_whole_path() {
        let home = "/home/user/".len();
        for (prefix, before) in [("/", 1), ("", home), ("~/", home)] {
            let longest = "x".repeat(PATH_MAX - 1 - before);
            let path = format!("{prefix}{longest}");
            assert_eq!(resolved(&path).as_os_str().len(), PATH_MAX - 1, "{prefix}");
            let error = try_resolve(&format!("{path}x")).unwrap_err();
            assert_eq!(error.message, "path is too long", "{prefix}");
        }
        assert_eq!(
            resolved(&"/a/..".repeat(PATH_MAX)),
            Path::new("/"),
            "what is taken out does not count"
        );
    }
}
