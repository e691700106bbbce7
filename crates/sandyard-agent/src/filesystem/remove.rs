//! Deleting files and directories with their content.

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;
use sandyard_wire::ConnectError;

use super::from_io;
use super::list::children;

/// Deletions before other tasks run.
const DELETIONS_PER_TURN: usize = 256;

/// Removes the file or directory of a path; succeeds when it does not exist. Links are removed, not followed.
pub(super) async fn remove(path: &Path) -> Result<(), ConnectError> {
    if path == Path::new("/") {
        return Err(ConnectError::invalid_argument(
            "the root directory cannot be removed",
        ));
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
                    // An invisible entry keeps it; a retry would never end.
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
