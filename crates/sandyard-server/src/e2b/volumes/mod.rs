//! Volumes and their contents.

use crate::mounted::Mounted;

/// Its routes.
pub(crate) fn routes() -> Vec<Mounted> {
    Vec::new()
}
