//! Creating directories.

use std::io;
use std::path::Path;

use rustix::fs::Mode;
use sandyard_wire::{Code, ConnectError};

use super::from_io;
use crate::user::{self, Account};

/// Creates a directory and its missing parents; an error when it exists.
pub(super) fn make_dir(path: &Path, account: &Account) -> Result<(), ConnectError> {
    if let Ok(stat) = rustix::fs::stat(path) {
        let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
        return Err(if kind.is_dir() {
            ConnectError::new(
                Code::AlreadyExists,
                format!("directory already exists: {}", path.display()),
            )
        } else {
            ConnectError::invalid_argument(format!(
                "path '{}' already exists but it is not a directory",
                path.display()
            ))
        });
    }
    make_all(path, account).map_err(|error| from_io(path, &error))
}

/// Creates every missing directory of a path, owned by a user.
pub(crate) fn make_all(path: &Path, account: &Account) -> io::Result<()> {
    let mut missing = Vec::new();
    let mut at = Some(path);
    while let Some(here) = at {
        match rustix::fs::stat(here) {
            Ok(_) => break,
            Err(rustix::io::Errno::NOENT) => missing.push(here),
            Err(error) => return Err(error.into()),
        }
        at = here.parent();
    }
    for directory in missing.into_iter().rev() {
        match rustix::fs::mkdir(directory, Mode::from_raw_mode(0o755)) {
            Ok(()) => give_to(directory, account)?,
            Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn give_to(path: &Path, account: &Account) -> io::Result<()> {
    if !user::can_become(account.uid, account.gid) {
        return Ok(());
    }
    Ok(rustix::fs::chown(
        path,
        Some(rustix::fs::Uid::from_raw(account.uid)),
        Some(rustix::fs::Gid::from_raw(account.gid)),
    )?)
}
