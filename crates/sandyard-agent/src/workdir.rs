//! Directories in which commands, terminals and the tool server start.

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Gid, Mode, Uid};

use crate::settings::Settings;
use crate::user::Account;

/// Environment variable with the one directory that replaces all defaults.
const VARIABLE: &str = "SANDYARD_WORKDIR";

/// The directory that replaces all defaults, if the sandbox has one. It is created for the user when it is missing.
pub(crate) fn common(settings: &Settings, account: &Account) -> Option<PathBuf> {
    let path = Path::new(settings.env.get(VARIABLE)?);
    if !path.is_absolute() {
        return None;
    }
    create(path, account);
    path.is_dir().then(|| path.to_owned())
}

/// Creates a directory for a user, unless it exists. An ordinary user who runs the agent may not be able to.
pub(crate) fn create(path: &Path, account: &Account) {
    if path.exists() || !rustix::process::geteuid().is_root() {
        return;
    }
    if let Some(parent) = path.parent() {
        // A failure shows in the next step.
        let _ = std::fs::create_dir_all(parent);
    }
    if rustix::fs::mkdir(path, Mode::from_raw_mode(0o775)).is_ok() {
        // Where the ids are not mapped, the agent stays the owner, and commands run as the agent's user then.
        let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
        let _ = rustix::fs::chownat(
            rustix::fs::CWD,
            path,
            Some(uid),
            Some(gid),
            AtFlags::SYMLINK_NOFOLLOW,
        );
    }
}
