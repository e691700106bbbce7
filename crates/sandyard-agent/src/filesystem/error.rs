//! Errors of the kernel, translated for clients.

use std::io;
use std::path::Path;

use rustix::fs::StatVfsMountFlags;
use sandyard_wire::{Code, ConnectError};

/// The error of a failed operation on a path.
pub(crate) fn from_io(path: &Path, error: &io::Error) -> ConnectError {
    match error.raw_os_error() {
        Some(libc::ENOENT) => {
            ConnectError::not_found(format!("path '{}' does not exist", path.display()))
        }
        Some(libc::EROFS) if is_on_writable_mount(path) => ConnectError::new(
            Code::Internal,
            format!(
                "'{}': the disk has failed; it takes no writes until the sandbox is started again",
                path.display()
            ),
        ),
        _ => ConnectError::new(code(error), format!("'{}': {error}", path.display())),
    }
}

/// Says whether the file system of `path`, which need not exist, is mounted for writing: its kernel refuses writes all the same
/// after it has found errors.
fn is_on_writable_mount(path: &Path) -> bool {
    let stat = path
        .ancestors()
        .find_map(|path| rustix::fs::statvfs(path).ok());
    stat.is_some_and(|stat| !stat.f_flag.contains(StatVfsMountFlags::RDONLY))
}

fn code(error: &io::Error) -> Code {
    match error.raw_os_error() {
        Some(libc::ENOENT) => Code::NotFound,
        Some(libc::EEXIST) => Code::AlreadyExists,
        Some(libc::EACCES | libc::EPERM | libc::EROFS) => Code::PermissionDenied,
        Some(libc::ENOSPC | libc::EDQUOT | libc::EMFILE | libc::ENFILE | libc::ENOMEM) => {
            Code::ResourceExhausted
        }
        Some(
            libc::ENOTDIR
            | libc::EISDIR
            | libc::ELOOP
            | libc::ENAMETOOLONG
            | libc::EINVAL
            | libc::ENXIO,
        ) => Code::InvalidArgument,
        Some(libc::ENOTEMPTY | libc::EBUSY) => Code::FailedPrecondition,
        _ => Code::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_failed_is_no_matter_of_permissions() {
        let refusal = io::Error::from_raw_os_error(libc::EROFS);
        let folder = tempfile::tempdir().unwrap();
        let failed = from_io(&folder.path().join("new/file"), &refusal);
        assert_eq!(failed.code, Code::Internal);
        assert!(
            failed.message.contains("the disk has failed"),
            "{}",
            failed.message
        );
    }
}
