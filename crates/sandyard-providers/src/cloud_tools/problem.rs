//! Why there is no tool server, and how that is told.

use std::io;
use std::time::Duration;

use sandyard_agent_client::ClientError;
use sandyard_agent_client::wire::Code;

/// Why there is no tool server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(super) code: Code,
    pub(super) message: String,
}

impl Problem {
    /// Something that its user can mend.
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            code: Code::FailedPrecondition,
            message: message.into(),
        }
    }

    /// Something that may be better in a moment.
    pub(super) fn passing(message: impl Into<String>) -> Self {
        Self {
            code: Code::Aborted,
            message: message.into(),
        }
    }

    /// Something that took too long.
    pub(super) fn late(doing: &str, most: Duration) -> Self {
        let seconds = most.as_secs();
        Self::passing(format!("it could not {doing} within {seconds} seconds"))
    }

    /// No room.
    pub(super) fn full(message: impl Into<String>) -> Self {
        Self {
            code: Code::ResourceExhausted,
            message: message.into(),
        }
    }

    /// In the agent's words, which whoever dials a port understands.
    pub(super) fn told(self) -> io::Error {
        io::Error::other(ClientError::Remote {
            code: self.code,
            message: format!("the tool server cannot be started: {}", self.message),
        })
    }
}

impl From<ClientError> for Problem {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Remote { code, message } => Self { code, message },
            other => Self::passing(other.to_string()),
        }
    }
}
