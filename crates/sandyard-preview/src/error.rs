//! Why a request could not be forwarded.

use std::error::Error;

use sandyard_core::ErrorKind;

use crate::dial::DialError;

/// Says why a request could not be forwarded. Nothing of a response was sent when it is returned.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// The request is not one that can be passed on.
    #[error("cannot forward the request: {0}")]
    BadRequest(&'static str),
    /// Nothing listens on the port.
    #[error("nothing listens on port {port}")]
    PortClosed {
        /// The port inside the sandbox.
        port: u16,
    },
    /// The sandbox cannot be reached.
    #[error("failed to connect to port {port}")]
    Unreachable {
        /// The port inside the sandbox.
        port: u16,
        /// What the dialler says.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// It took too long.
    #[error("timed out {0}")]
    Timeout(&'static str),
    /// What listens answered something that is not HTTP, is too large, or ended too early.
    #[error("port {port} gave a bad response: {detail}")]
    BadResponse {
        /// The port inside the sandbox.
        port: u16,
        /// What is wrong with it.
        detail: &'static str,
        /// What the parser says.
        #[source]
        source: Option<hyper::Error>,
    },
    /// The client went away in the middle of its request.
    #[error("the client went away")]
    ClientGone,
}

impl ForwardError {
    /// Gives the kind in the registry.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::BadRequest(_) | Self::ClientGone => ErrorKind::BadRequest,
            Self::PortClosed { .. } => ErrorKind::PortClosed,
            Self::Unreachable { .. } => ErrorKind::Unavailable,
            Self::Timeout(_) => ErrorKind::TimedOut,
            Self::BadResponse { .. } => ErrorKind::AgentFailed,
        }
    }

    pub(crate) fn bad_response(port: u16, detail: &'static str) -> Self {
        Self::BadResponse {
            port,
            detail,
            source: None,
        }
    }

    pub(crate) fn of_dial(port: u16, error: DialError) -> Self {
        match error {
            DialError::PortClosed => Self::PortClosed { port },
            DialError::Timeout => Self::Timeout("connecting to the port"),
            DialError::Unreachable(source) => Self::Unreachable { port, source },
        }
    }

    pub(crate) fn of_hyper(port: u16, error: hyper::Error) -> Self {
        let detail = if error.is_parse_too_large() {
            "its headers are too large"
        } else if error.is_parse() {
            "it is not HTTP/1.1"
        } else {
            "the connection ended before it"
        };
        Self::BadResponse {
            port,
            detail,
            source: Some(error),
        }
    }
}
