//! Why a preview cannot be shown, in numbers and in words.

use http::StatusCode;
use sandyard_core::ErrorKind;

use crate::access::Denial;
use crate::error::ForwardError;

/// Why a preview cannot be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The sandbox runs and nothing listens.
    PortClosed,
    /// There is no such sandbox, or not any more.
    Gone,
    /// The sandbox is paused, and waking it failed.
    CannotWake,
    /// The preview is private and there is no token.
    NeedsLink,
    /// The preview is private and the token is not good.
    Refused,
    /// The program did not answer in time.
    Timeout,
    /// The program answered something that is not HTTP.
    BadResponse,
    /// The sandbox cannot be reached at the moment.
    Unreachable,
    /// The request cannot be passed on.
    BadRequest,
}

/// The texts of a problem.
pub(crate) struct Words {
    pub(crate) title: &'static str,
    pub(crate) message: String,
    pub(crate) hint: String,
}

impl From<&ForwardError> for Problem {
    fn from(error: &ForwardError) -> Self {
        match error {
            ForwardError::BadRequest(_) | ForwardError::ClientGone => Self::BadRequest,
            ForwardError::PortClosed { .. } => Self::PortClosed,
            ForwardError::Unreachable { .. } => Self::Unreachable,
            ForwardError::Timeout(_) => Self::Timeout,
            ForwardError::BadResponse { .. } => Self::BadResponse,
        }
    }
}

impl From<Denial> for Problem {
    fn from(denial: Denial) -> Self {
        match denial {
            Denial::Missing => Self::NeedsLink,
            Denial::Refused | Denial::Foreign => Self::Refused,
        }
    }
}

impl Problem {
    /// Gives the HTTP status.
    pub fn status(self) -> StatusCode {
        match self {
            Self::PortClosed | Self::BadResponse => StatusCode::BAD_GATEWAY,
            Self::Gone => StatusCode::NOT_FOUND,
            Self::CannotWake | Self::Unreachable => StatusCode::SERVICE_UNAVAILABLE,
            Self::NeedsLink => StatusCode::UNAUTHORIZED,
            Self::Refused => StatusCode::FORBIDDEN,
            Self::Timeout => StatusCode::GATEWAY_TIMEOUT,
            Self::BadRequest => StatusCode::BAD_REQUEST,
        }
    }

    /// Gives the kind in the registry.
    pub fn kind(self) -> ErrorKind {
        match self {
            Self::PortClosed => ErrorKind::PortClosed,
            Self::Gone => ErrorKind::SandboxNotFound,
            Self::CannotWake | Self::Unreachable => ErrorKind::Unavailable,
            Self::NeedsLink => ErrorKind::Unauthenticated,
            Self::Refused => ErrorKind::Forbidden,
            Self::Timeout => ErrorKind::TimedOut,
            Self::BadResponse => ErrorKind::AgentFailed,
            Self::BadRequest => ErrorKind::BadRequest,
        }
    }

    /// Says it in one sentence.
    pub fn message(self, port: u16) -> String {
        self.words(port).message
    }

    pub(crate) fn words(self, port: u16) -> Words {
        let words = |title, message: String, hint: &str| Words {
            title,
            message,
            hint: hint.to_owned(),
        };
        match self {
            Self::PortClosed => words(
                "Nothing is listening yet",
                format!("The sandbox is running, but no program listens on port {port}."),
                &format!("Start one in the sandbox, for example `python3 -m http.server {port}`, and reload."),
            ),
            Self::Gone => words(
                "No such sandbox",
                "There is no sandbox of this name, or it has been deleted.".to_owned(),
                "Check the address, or create a new sandbox.",
            ),
            Self::CannotWake => words(
                "The sandbox is asleep",
                "The sandbox is paused and could not be woken.".to_owned(),
                "Try again in a moment, or resume the sandbox yourself and reload.",
            ),
            Self::NeedsLink => words(
                "This preview is private",
                "It opens with a link or a token of its owner.".to_owned(),
                "Ask for a preview link, or send the token in the header `X-Sandyard-Token`.",
            ),
            Self::Refused => words(
                "This link does not open it",
                "The preview is private, and the link or token is not valid for it, or not any more.".to_owned(),
                "Ask for a new preview link and open it in this browser.",
            ),
            Self::Timeout => words(
                "No answer in time",
                format!("The program on port {port} took too long to answer."),
                "It may be busy or stuck: look at its output, then reload.",
            ),
            Self::BadResponse => words(
                "The answer makes no sense",
                format!("What listens on port {port} did not answer in HTTP."),
                "Check that the port serves HTTP and not TLS or another protocol, and look at the program's output.",
            ),
            Self::Unreachable => words(
                "The sandbox cannot be reached",
                "The sandbox did not take the connection.".to_owned(),
                "Try again in a moment.",
            ),
            Self::BadRequest => words(
                "This request cannot be passed on",
                "Something about the request is malformed.".to_owned(),
                "Check its length, its host and its path.",
            ),
        }
    }
}
