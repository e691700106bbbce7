//! The daemon's failures and ours.

use std::error::Error as _;
use std::time::Duration;

use bollard::errors::Error;
use sandyard_provider::{ProviderError, ProviderErrorKind, Verb};

use super::error_kind::{is_full, kind};

/// Longest message of the daemon's that is handed on.
const MAX_MESSAGE: usize = 500;

/// Why something did not work out.
#[derive(Debug)]
pub(super) enum Fault {
    /// The daemon said so, or nothing at all.
    Daemon(Error),
    /// It is known what is wrong.
    Provider(ProviderError),
}

/// Result of a conversation with the daemon.
pub(super) type DaemonResult<T = ()> = Result<T, Fault>;

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Daemon(error)
    }
}

impl From<ProviderError> for Fault {
    fn from(error: ProviderError) -> Self {
        Self::Provider(error)
    }
}

impl Fault {
    /// The HTTP status the daemon answered with, if it did.
    pub(super) fn status(&self) -> Option<u16> {
        match self {
            Self::Daemon(Error::DockerResponseServerError { status_code, .. }) => {
                Some(*status_code)
            }
            _ => None,
        }
    }

    /// Says whether what was asked for is not there.
    pub(super) fn is_absent(&self) -> bool {
        self.status() == Some(404)
    }

    /// Says whether nobody answered: what was asked may or may not have been done.
    pub(super) fn is_lost(&self) -> bool {
        match self {
            Self::Daemon(error) => is_lost(error),
            Self::Provider(_) => false,
        }
    }

    /// In the callers' words.
    pub(super) fn into_error(self, verb: Verb) -> ProviderError {
        match self {
            Self::Provider(error) => error,
            Self::Daemon(error) => provider_error(verb, error),
        }
    }

    /// For the log, and for what went wrong on the way to something else.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Provider(error) => error.message.clone(),
            Self::Daemon(Error::DockerResponseServerError { message, .. }) => cut(message),
            Self::Daemon(error) => cut(&chain(error)),
        }
    }
}

/// The opposite of something being there.
pub(super) fn if_there<T>(told: Result<T, Error>) -> DaemonResult<Option<T>> {
    match told.map_err(Fault::from) {
        Ok(found) => Ok(Some(found)),
        Err(fault) if fault.is_absent() => Ok(None),
        Err(fault) => Err(fault),
    }
}

pub(super) fn known(kind: ProviderErrorKind, message: impl Into<String>) -> Fault {
    Fault::Provider(ProviderError::new(kind, message))
}

pub(super) fn invalid(message: impl Into<String>) -> Fault {
    known(ProviderErrorKind::Invalid, message)
}

/// What is said of an id that no instance has.
pub(super) fn no_instance(id: &str) -> ProviderError {
    let short: String = id.chars().take(64).collect();
    ProviderError::new(ProviderErrorKind::NotFound, format!("no sandbox `{short}`"))
}

pub(super) fn timed_out(verb: Verb, after: Duration) -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::TimedOut,
        format!("Docker took longer than {after:?} to {}", words(verb)),
    )
    .hint(Some(
        "see whether `docker info` answers on the daemon's host".to_owned(),
    ))
}

fn provider_error(verb: Verb, error: Error) -> ProviderError {
    use ProviderErrorKind::{Failed, NoCapacity, TimedOut};
    if is_lost(&error) {
        let why = cut(&chain(&error));
        let message = format!("Docker was not there to {}: {why}", words(verb));
        return unreachable(message).source(error);
    }
    if let Some(refusal) = no_tls(&error) {
        return refusal.source(error);
    }
    let (kind, message) = match &error {
        Error::DockerResponseServerError {
            status_code,
            message,
        } => {
            let kind = kind(*status_code, message);
            let message = format!("Docker cannot {}: {}", words(verb), cut(message));
            (kind, message)
        }
        Error::RequestTimeoutError => {
            let message = format!("Docker took too long to {}", words(verb));
            (TimedOut, message)
        }
        Error::DockerStreamError { error } if is_full(error) => {
            let message = format!("Docker has no room to {}", words(verb));
            (NoCapacity, message)
        }
        other => {
            let message = format!("Docker failed to {}: {}", words(verb), cut(&chain(other)));
            (Failed, message)
        }
    };
    ProviderError::new(kind, message).source(error)
}

/// Says that nobody answers at the daemon's address.
pub(super) fn unreachable(message: String) -> ProviderError {
    ProviderError::new(ProviderErrorKind::Unavailable, message).hint(Some(
        "is Docker running? `docker info` must answer at the address in the setting `docker.host`"
            .to_owned(),
    ))
}

/// What a daemon that wants TLS answers to who speaks none.
fn no_tls(error: &Error) -> Option<ProviderError> {
    let Error::DockerResponseServerError { message, .. } = error else {
        return None;
    };
    message
        .contains("HTTP request to an HTTPS server")
        .then(|| {
            let message = "Docker wants TLS at that address";
            ProviderError::new(ProviderErrorKind::Unavailable, message).hint(Some(
                "set DOCKER_TLS_VERIFY=1 and DOCKER_CERT_PATH to the folder of the certificates"
                    .to_owned(),
            ))
        })
}

fn is_lost(error: &Error) -> bool {
    matches!(
        error,
        Error::IOError { .. }
            | Error::HyperResponseError { .. }
            | Error::HyperLegacyError { .. }
            | Error::SocketNotFoundError(_)
    )
}

/// An error with all its causes.
fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

/// At most so much of what the daemon says, in one line.
pub(super) fn cut(message: &str) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_MESSAGE) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

fn words(verb: Verb) -> String {
    verb.as_str().replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(status_code: u16, message: &str) -> ProviderError {
        let message = message.to_owned();
        let error = Error::DockerResponseServerError {
            status_code,
            message,
        };
        Fault::from(error).into_error(Verb::Create)
    }

    #[test]
    fn long_messages_are_cut() {
        let error = said(500, &"ä \n".repeat(10_000));
        assert!(error.message.chars().count() < MAX_MESSAGE + 50);
        assert!(!error.message.contains('\n'));
    }
}
