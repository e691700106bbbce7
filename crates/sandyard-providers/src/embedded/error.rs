//! The engine's failures and ours.

use std::time::Duration;

use sandyard_engine::{EngineError, ErrorKind};
use sandyard_provider::{ProviderError, ProviderErrorKind, Verb};

/// Puts a failure of the engine into the callers' words. Messages of failures that are the host's name its paths: those go
/// to the log alone.
pub(super) fn provider_error(verb: Verb, error: EngineError) -> ProviderError {
    let (kind, message) = match error.kind {
        ErrorKind::NotFound => (ProviderErrorKind::NotFound, error.message.clone()),
        ErrorKind::Conflict => (ProviderErrorKind::Conflict, error.message.clone()),
        ErrorKind::Invalid => (ProviderErrorKind::Invalid, error.message.clone()),
        ErrorKind::Unsupported => (ProviderErrorKind::Unsupported, error.message.clone()),
        // Somebody, perhaps an earlier call of ours that took too long, still works on it.
        ErrorKind::Busy => (ProviderErrorKind::TimedOut, error.message.clone()),
        ErrorKind::NoCapacity => (
            ProviderErrorKind::NoCapacity,
            match &error.hint {
                // A hint of this kind says how much is missing, and no path.
                Some(hint) => format!("the host has no room to {}: {hint}", words(verb)),
                None => format!("the host has no room to {}", words(verb)),
            },
        ),
        ErrorKind::Unavailable => (
            ProviderErrorKind::Unavailable,
            format!("the engine was not there to {}", words(verb)),
        ),
        _ => (
            ProviderErrorKind::Failed,
            format!("the engine failed to {}", words(verb)),
        ),
    };
    ProviderError::new(kind, message).source(error)
}

pub(super) fn timed_out(verb: Verb, after: Duration) -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::TimedOut,
        format!("the engine took longer than {after:?} to {}", words(verb)),
    )
}

/// What is said of an id that no instance can have.
pub(super) fn no_instance(id: &str) -> ProviderError {
    let short: String = id.chars().take(64).collect();
    ProviderError::new(ProviderErrorKind::NotFound, format!("no sandbox `{short}`"))
}

fn words(verb: Verb) -> String {
    verb.as_str().replace('_', " ")
}
