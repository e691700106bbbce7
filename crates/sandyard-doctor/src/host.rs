//! The user that runs the checks, and the data directory.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::report::Mode;

/// What the checks need to know.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Name of the user, or the number where it has none.
    pub(crate) user: String,
    pub(crate) data_dir: PathBuf,
    /// The data directory, or what exists above it: the file system it is or will be on.
    pub(crate) data_base: PathBuf,
}

impl Host {
    pub(crate) fn detect(data_dir: &Path) -> Self {
        let uid = rustix::process::geteuid().as_raw();
        Self {
            uid,
            gid: rustix::process::getegid().as_raw(),
            user: user_name(&read("/etc/passwd"), uid),
            data_dir: data_dir.to_owned(),
            data_base: existing(data_dir),
        }
    }

    pub(crate) fn is_root(&self) -> bool {
        self.uid == 0
    }

    pub(crate) fn mode(&self) -> Mode {
        match self.is_root() {
            true => Mode::Root,
            false => Mode::User,
        }
    }

    /// Reads a kernel setting as a number.
    pub(crate) fn sysctl(&self, name: &str) -> Option<u64> {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        read(path).trim().parse().ok()
    }
}

/// A name that no other report uses, in this process or another.
pub(crate) fn unique(purpose: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("sandyard-doctor-{purpose}-{}-{number}", std::process::id())
}

/// Reads a small text file; a missing one is empty.
pub(crate) fn read(path: impl AsRef<Path>) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn user_name(passwd: &str, uid: u32) -> String {
    passwd
        .lines()
        .find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
        })
        .unwrap_or_else(|| uid.to_string())
}

fn existing(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute
        .ancestors()
        .find(|ancestor| ancestor.is_dir())
        .unwrap_or(Path::new("/"))
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_is_named_by_passwd_or_number() {
        let passwd = "root:x:0:0::/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n";
        assert_eq!(user_name(passwd, 1000), "ada");
        assert_eq!(user_name(passwd, 5), "5");
    }

    #[test]
    fn missing_data_directory_stands_on_what_exists_above_it() {
        assert_eq!(
            existing(Path::new("/proc/self/no/such")),
            Path::new("/proc/self")
        );
        assert_eq!(existing(Path::new("/no-such-thing/a")), Path::new("/"));
    }
}
