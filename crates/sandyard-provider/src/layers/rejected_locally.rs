//! Marks errors of calls that a layer rejected before they reached the provider.

use crate::ProviderError;

/// The source of an error that a layer returned without asking the provider.
#[derive(Debug, thiserror::Error)]
#[error("the call was not sent to the provider")]
pub(super) struct RejectedLocally;

/// Whether a layer rejected the call before it reached the provider.
pub(super) fn is_rejected_locally(error: &ProviderError) -> bool {
    let source = error.source.as_deref();
    source.is_some_and(|source| source.is::<RejectedLocally>())
}
