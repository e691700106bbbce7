//! Parts of clean paths, and the errors about paths.

use sandyard_wire::ConnectError;

/// The parent folder of a clean path.
pub(crate) fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((parent, _)) => parent,
    }
}

/// The last part of a clean path.
pub(crate) fn name(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some((_, name)) if !name.is_empty() => name,
        _ => path,
    }
}

pub(crate) fn missing(path: &str) -> ConnectError {
    ConnectError::not_found(format!("path '{path}' does not exist"))
}

pub(crate) fn no_folder(path: &str) -> ConnectError {
    ConnectError::invalid_argument(format!("path '{path}' is not a directory"))
}

pub(super) fn is_folder(path: &str) -> ConnectError {
    ConnectError::invalid_argument(format!("path '{path}' is a directory"))
}
