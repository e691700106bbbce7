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
            format!(
                "the host has no room to {}: {}",
                words(verb),
                without_paths(&error.message)
            ),
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
    let hint = error.hint.clone();
    let mut failure = ProviderError::new(kind, message).source(error);
    failure.hint = failure
        .hint
        .or(hint.filter(|_| kind == ProviderErrorKind::NoCapacity));
    failure
}

/// A message with «the data directory» for each path of the host in it: that is where the engine runs out of room.
fn without_paths(message: &str) -> String {
    let words = message.split(' ').map(|word| {
        let bare = word.trim_start_matches('`');
        let end = bare.trim_end_matches('`').trim_end_matches([':', ';', ',']);
        match bare.starts_with('/') {
            true => {
                let punctuation = bare.trim_start_matches(end).trim_start_matches('`');
                format!("the data directory{punctuation}")
            }
            false => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_learn_why_there_is_no_room_but_no_path_of_the_host() {
        for (message, shown) in [
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
            assert_eq!(without_paths(message), shown);
        }
    }
}
