//! Translates errors of the engine.

use std::time::Duration;

use sandyard_engine::{EngineError, ErrorKind};
use sandyard_provider::{ProviderError, ProviderErrorKind, Verb};

/// Translates an error of the engine. Messages about the host contain its paths: those are only logged.
pub(super) fn provider_error(verb: Verb, error: EngineError) -> ProviderError {
    let (kind, message) = match error.kind {
        ErrorKind::NotFound => (ProviderErrorKind::NotFound, error.message.clone()),
        ErrorKind::Conflict => (ProviderErrorKind::Conflict, error.message.clone()),
        ErrorKind::Invalid => (ProviderErrorKind::Invalid, error.message.clone()),
        ErrorKind::Unsupported => (ProviderErrorKind::Unsupported, error.message.clone()),
        // Another request, perhaps an earlier one that timed out, still works on it.
        ErrorKind::Busy => (ProviderErrorKind::TimedOut, error.message.clone()),
        ErrorKind::NoCapacity => (
            ProviderErrorKind::NoCapacity,
            format!(
                "the host has no capacity to {}: {}",
                description(verb),
                without_paths(&error.message)
            ),
        ),
        ErrorKind::Unavailable => (
            ProviderErrorKind::Unavailable,
            format!("the engine is not available to {}", description(verb)),
        ),
        _ => (
            ProviderErrorKind::Failed,
            format!("the engine failed to {}", description(verb)),
        ),
    };
    let hint = error.hint.clone();
    let mut failure = ProviderError::new(kind, message).source(error);
    failure.hint = failure
        .hint
        .or(hint.filter(|_| kind == ProviderErrorKind::NoCapacity));
    failure
}

/// Replaces each path of the host in a message by «the data directory», where the engine runs out of space.
fn without_paths(message: &str) -> String {
    let parts = message.split(' ').map(|part| {
        let unquoted = part.trim_start_matches('`');
        let end = unquoted
            .trim_end_matches('`')
            .trim_end_matches([':', ';', ',']);
        match unquoted.starts_with('/') {
            true => {
                let punctuation = unquoted.trim_start_matches(end).trim_start_matches('`');
                format!("the data directory{punctuation}")
            }
            false => part.to_owned(),
        }
    });
    parts.collect::<Vec<_>>().join(" ")
}

pub(super) fn timed_out(verb: Verb, after: Duration) -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::TimedOut,
        format!(
            "the engine took longer than {after:?} to {}",
            description(verb)
        ),
    )
}

/// The error for an id that no instance can have.
pub(super) fn no_instance(id: &str) -> ProviderError {
    let short: String = id.chars().take(64).collect();
    ProviderError::new(ProviderErrorKind::NotFound, format!("no sandbox `{short}`"))
}

fn description(verb: Verb) -> String {
    verb.as_str().replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_learn_what_is_full_but_no_path_of_the_host() {
        for (message, expected) in [
            (
                "less than 1 GiB is free in `/var/lib/sandyard`",
                "less than 1 GiB is free in the data directory",
            ),
            (
                "write /var/lib/sandyard/x: No space left on device",
                "write the data directory: No space left on device",
            ),
            (
                "open `/srv/x`: No space left on device",
                "open the data directory: No space left on device",
            ),
        ] {
            assert_eq!(without_paths(message), expected);
        }
    }
}
