//! The control plane: sandboxes, snapshots and templates, one verb a file.

use crate::mounted::Mounted;

/// Its routes.
pub(crate) fn routes() -> Vec<Mounted> {
    Vec::new()
}
