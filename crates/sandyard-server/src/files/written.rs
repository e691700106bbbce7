//! The response to writing a file.

use serde::Serialize;
use utoipa::ToSchema;

/// What was written.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Written {
    pub(super) success: bool,
    /// Where, in full.
    pub(super) path: String,
    /// How many bytes.
    pub(super) size: u64,
    pub(super) message: String,
}

impl Written {
    pub(super) fn new(path: String, size: u64) -> Self {
        Self {
            success: true,
            message: format!("{size} bytes written to `{path}`"),
            path,
            size,
        }
    }
}
