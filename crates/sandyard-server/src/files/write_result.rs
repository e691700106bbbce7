//! The response to writing a file.

use serde::Serialize;
use utoipa::ToSchema;

/// File that was written.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FileWriteResult {
    /// Always `true`; a failed request has an error status instead.
    pub(super) success: bool,
    /// Absolute path of the file inside the sandbox.
    pub(super) path: String,
    /// Number of bytes written.
    pub(super) size: u64,
    /// Summary of the result for people.
    pub(super) message: String,
}

impl FileWriteResult {
    pub(super) fn new(path: String, size: u64) -> Self {
        Self {
            success: true,
            message: format!("{size} bytes written to `{path}`"),
            path,
            size,
        }
    }
}
