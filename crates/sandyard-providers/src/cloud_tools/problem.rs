//! Why there is no tool server, and the error of that.

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
    /// A problem that the user can solve.
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            code: Code::FailedPrecondition,
            message: message.into(),
        }
    }

    /// A problem that may be solved by trying again.
    pub(super) fn temporary(message: impl Into<String>) -> Self {
        Self {
            code: Code::Aborted,
            message: message.into(),
        }
    }

    /// A timeout.
    pub(super) fn timed_out(action: &str, timeout: Duration) -> Self {
        let seconds = timeout.as_secs();
        Self::temporary(format!("it could not {action} within {seconds} seconds"))
    }

    /// The disk is full.
    pub(super) fn disk_full(message: impl Into<String>) -> Self {
        Self {
            code: Code::ResourceExhausted,
            message: message.into(),
        }
    }

    /// As an error of the agent, which callers that dial a port understand.
    pub(super) fn into_io(self) -> io::Error {
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
            other => Self::temporary(other.to_string()),
        }
    }
}
