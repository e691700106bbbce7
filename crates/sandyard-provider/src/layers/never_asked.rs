//! Failures of which a provider knows nothing: a layer gave them.

use std::fmt;

use crate::ProviderError;

/// The cause of a failure of which the provider knows nothing.
#[derive(Debug)]
pub(super) struct NeverAsked;

impl fmt::Display for NeverAsked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the provider was not asked")
    }
}

impl std::error::Error for NeverAsked {}

/// Says whether a call failed here, before its provider was asked.
pub(super) fn was_never_asked(error: &ProviderError) -> bool {
    let source = error.source.as_deref();
    source.is_some_and(|source| source.is::<NeverAsked>())
}
