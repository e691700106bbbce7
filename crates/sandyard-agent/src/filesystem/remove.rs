//! Deleting, with everything below.

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;
use sandyard_wire::ConnectError;

use super::from_io;
use super::list::children;

/// Deletions done before others get their turn.
const DELETIONS_PER_TURN: usize = 256;

/// Removes what a path names; that it does not exist is fine. Links are removed, not followed.
pub(super) async fn remove(path: &Path) -> Result<(), ConnectError> {
    if path == Path::new("/") {
        return Err(ConnectError::invalid_argument("the root cannot be removed"));
    }
    let mut waiting: Vec<PathBuf> = vec![path.to_owned()];
    let mut count = 0;
    while let Some(last) = waiting.last() {
        count += 1;
        if count % DELETIONS_PER_TURN == 0 {
            tokio::task::yield_now().await;
        }
        match unlink(last) {
            Ok(()) => {
                waiting.pop();
            }
            Err(Errno::NOTEMPTY | Errno::EXIST) => {
                let inside = children(last).map_err(|error| from_io(path, &error))?;
                if inside.is_empty() {
                    // Something holds it that cannot be seen; trying again would never end.
                    return Err(from_io(last, &Errno::NOTEMPTY.into()));
                }
                waiting.extend(inside);
            }
            Err(error) => return Err(from_io(last, &error.into())),
        }
    }
    Ok(())
}

/// Removes one file or empty directory.
fn unlink(path: &Path) -> Result<(), Errno> {
    match rustix::fs::unlinkat(CWD, path, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => {
            match rustix::fs::unlinkat(CWD, path, AtFlags::REMOVEDIR) {
                Err(Errno::NOENT) => Ok(()),
                Err(Errno::NOTDIR) => Err(Errno::PERM),
                done => done,
            }
        }
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
        done => done,
    }
}
