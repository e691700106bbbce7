//! Translates errors of the daemon.

use std::error::Error as _;
use std::time::Duration;

use bollard::errors::Error;
use sandyard_provider::{ProviderError, ProviderErrorKind, Verb};

use super::error_kind::{is_full, kind};

/// Maximum length of the daemon's message that is passed on.
const MAX_MESSAGE: usize = 500;

/// Why a request failed.
#[derive(Debug)]
pub(super) enum Fault {
    /// An error of the daemon, or of the connection.
    Daemon(Error),
    /// An error with a known cause.
    Provider(ProviderError),
}

/// Result of a request to the daemon.
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
    /// The HTTP status of the daemon's answer, if there was one.
    pub(super) fn status(&self) -> Option<u16> {
        match self {
            Self::Daemon(Error::DockerResponseServerError { status_code, .. }) => {
                Some(*status_code)
            }
            _ => None,
        }
    }

    /// Whether the object does not exist.
    pub(super) fn is_not_found(&self) -> bool {
        self.status() == Some(404)
    }

    /// Whether no answer arrived: the request may or may not have been executed.
    pub(super) fn is_lost(&self) -> bool {
        match self {
            Self::Daemon(error) => is_lost(error),
            Self::Provider(_) => false,
        }
    }

    /// As an error for callers.
    pub(super) fn into_error(self, verb: Verb) -> ProviderError {
        match self {
            Self::Provider(error) => error,
            Self::Daemon(error) => provider_error(verb, error),
        }
    }

    /// For logs and for messages about another error.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Provider(error) => error.message.clone(),
            Self::Daemon(Error::DockerResponseServerError { message, .. }) => shorten(message),
            Self::Daemon(error) => shorten(&chain(error)),
        }
    }
}

/// `None` if the object does not exist.
pub(super) fn if_exists<T>(result: Result<T, Error>) -> DaemonResult<Option<T>> {
    match result.map_err(Fault::from) {
        Ok(found) => Ok(Some(found)),
        Err(fault) if fault.is_not_found() => Ok(None),
        Err(fault) => Err(fault),
    }
}

pub(super) fn fault(kind: ProviderErrorKind, message: impl Into<String>) -> Fault {
    Fault::Provider(ProviderError::new(kind, message))
}

pub(super) fn invalid(message: impl Into<String>) -> Fault {
    fault(ProviderErrorKind::Invalid, message)
}

/// The error for an id that no instance has.
pub(super) fn no_instance(id: &str) -> ProviderError {
    let short: String = id.chars().take(64).collect();
    ProviderError::new(ProviderErrorKind::NotFound, format!("no sandbox `{short}`"))
}

pub(super) fn timed_out(verb: Verb, after: Duration) -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::TimedOut,
        format!("Docker took longer than {after:?} to {}", description(verb)),
    )
    .hint(Some(
        "check that `docker info` answers on the daemon's host".to_owned(),
    ))
}

fn provider_error(verb: Verb, error: Error) -> ProviderError {
    use ProviderErrorKind::{Failed, NoCapacity, TimedOut};
    if is_lost(&error) {
        let problem = shorten(&chain(&error));
        let message = format!(
            "Docker is not available to {}: {problem}",
            description(verb)
        );
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
            let message = format!("Docker cannot {}: {}", description(verb), shorten(message));
            (kind, message)
        }
        Error::RequestTimeoutError => {
            let message = format!("Docker took too long to {}", description(verb));
            (TimedOut, message)
        }
        Error::DockerStreamError { error } if is_full(error) => {
            let message = format!("Docker has no space to {}", description(verb));
            (NoCapacity, message)
        }
        other => {
            let message = format!(
                "Docker failed to {}: {}",
                description(verb),
                shorten(&chain(other))
            );
            (Failed, message)
        }
    };
    ProviderError::new(kind, message).source(error)
}

/// The error of a daemon that does not answer at its address.
pub(super) fn unreachable(message: String) -> ProviderError {
    ProviderError::new(ProviderErrorKind::Unavailable, message).hint(Some(
        "check that Docker runs: `docker info` must answer at the address in the setting `docker.host`"
            .to_owned(),
    ))
}

/// The error for a daemon that requires TLS, if that is the cause.
fn no_tls(error: &Error) -> Option<ProviderError> {
    let Error::DockerResponseServerError { message, .. } = error else {
        return None;
    };
    message
        .contains("HTTP request to an HTTPS server")
        .then(|| {
            let message = "Docker requires TLS at that address";
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

/// The beginning of the daemon's message, on one line.
pub(super) fn shorten(message: &str) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_MESSAGE) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

fn description(verb: Verb) -> String {
    verb.as_str().replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(status_code: u16, message: &str) -> ProviderError {
        let message = message.to_owned();
        let error = Error::DockerResponseServerError {
            status_code,
            message,
        };
        Fault::from(error).into_error(Verb::Create)
    }

    #[test]
    fn long_messages_are_shortened() {
        let error = error_of(500, &"ä \n".repeat(10_000));
        assert!(error.message.chars().count() < MAX_MESSAGE + 50);
        assert!(!error.message.contains('\n'));
    }
}
