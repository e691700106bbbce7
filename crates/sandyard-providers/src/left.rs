//! Failures after which something may be left.

use sandyard_provider::{ProviderError, ProviderErrorKind, Retry};

/// The failure of a call that could not take back what it had made: whoever hears it must not believe that nothing is there, which
/// only these kinds say.
pub(crate) fn unsure(error: ProviderError) -> ProviderError {
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
    fn no_kind_says_that_nothing_is_left() {
        use ProviderErrorKind::{Failed, NoCapacity, TimedOut, Unavailable};
        for (kind, told) in [
            (NoCapacity, Unavailable),
            (Failed, Unavailable),
            (Unavailable, Unavailable),
            (TimedOut, TimedOut),
        ] {
            let error = unsure(ProviderError::new(kind, "because"));
            assert_eq!((error.kind, error.retry), (told, Retry::Later));
            assert_eq!(error.message, "because");
        }
    }
}
