//! Errors after which something may have been created.

use sandyard_provider::{ProviderError, ProviderErrorKind, Retry};

/// The error of a call that could not undo what it had created: only these kinds tell the caller that something may exist.
pub(crate) fn maybe_created(error: ProviderError) -> ProviderError {
    match error.kind {
        ProviderErrorKind::TimedOut | ProviderErrorKind::Unavailable => error,
        _ => ProviderError {
            kind: ProviderErrorKind::Unavailable,
            retry: Retry::Later,
            ..error
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_says_that_something_may_exist() {
        use ProviderErrorKind::{Failed, NoCapacity, TimedOut, Unavailable};
        for (kind, expected) in [
            (NoCapacity, Unavailable),
            (Failed, Unavailable),
            (Unavailable, Unavailable),
            (TimedOut, TimedOut),
        ] {
            let error = maybe_created(ProviderError::new(kind, "because"));
            assert_eq!((error.kind, error.retry), (expected, Retry::Later));
            assert_eq!(error.message, "because");
        }
    }
}
