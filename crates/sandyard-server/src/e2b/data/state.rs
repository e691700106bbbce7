//! What the data plane keeps between requests.

use super::exchange::Exchanges;
use super::signature::Signatures;

/// State of the data plane.
#[derive(Debug, Default)]
pub(crate) struct DataPlane {
    /// Responses in progress.
    pub(crate) exchanges: Exchanges,
    /// Finds the sandbox of a signature.
    pub(super) signatures: Signatures,
}
