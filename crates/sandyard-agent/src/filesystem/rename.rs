//! Renaming files.

use std::path::Path;

use sandyard_wire::ConnectError;

use super::{from_io, make_all};
use crate::user::Account;

/// Renames a file, creates the destination's directories, and replaces a file there.
pub(super) fn rename(
    source: &Path,
    destination: &Path,
    account: &Account,
) -> Result<(), ConnectError> {
    rustix::fs::lstat(source).map_err(|error| from_io(source, &error.into()))?;
    if let Some(parent) = destination.parent() {
        make_all(parent, account).map_err(|error| from_io(parent, &error))?;
    }
    rustix::fs::rename(source, destination).map_err(|error| match error {
        rustix::io::Errno::XDEV => ConnectError::invalid_argument(format!(
            "'{}' and '{}' are on different file systems",
            source.display(),
            destination.display()
        )),
        error => from_io(destination, &error.into()),
    })
}
