//! Errors of the kernel, translated for clients.

use std::io;
use std::path::Path;

use sandyard_wire::{Code, ConnectError};

/// The error of a failed operation on a path.
pub(crate) fn from_io(path: &Path, error: &io::Error) -> ConnectError {
    let path = path.display();
    match error.raw_os_error() {
        Some(libc::ENOENT) => ConnectError::not_found(format!("path '{path}' does not exist")),
        _ => ConnectError::new(code(error), format!("'{path}': {error}")),
    }
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
