//! How a call to an agent fails.

use std::io;
use std::time::Duration;

use sandyard_wire::{Code, FrameError};

/// Maximum length of an agent's message that is shown to people, in characters.
const MAX_MESSAGE_CHARS: usize = 1024;

/// Result of a call to an agent.
pub(crate) type Result<T, E = ClientError> = std::result::Result<T, E>;

/// Why a call to an agent failed. `call` is the path of the request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The agent could not be reached.
    #[error("failed to connect to the agent at {endpoint}")]
    Connect {
        /// The agent's endpoint.
        endpoint: String,
        /// Why the connection failed.
        #[source]
        source: io::Error,
    },
    /// The agent took too long.
    #[error("the agent did not answer `{call}` within {after:?}")]
    Timeout {
        /// The path of the request.
        call: &'static str,
        /// The time limit.
        after: Duration,
    },
    /// The agent sent more than the limit.
    #[error("the agent's {part} for `{call}` is larger than {max} bytes")]
    TooLarge {
        /// The path of the request.
        call: &'static str,
        /// The part that was too large.
        part: &'static str,
        /// The limit.
        max: usize,
    },
    /// The agent's answer is invalid.
    #[error("the agent's answer to `{call}` violates the protocol: {detail}")]
    Protocol {
        /// The path of the request.
        call: &'static str,
        /// What is invalid.
        detail: String,
    },
    /// The agent refused the call.
    #[error("{message} ({code})")]
    Remote {
        /// The reason, for programs.
        code: Code,
        /// The reason, for people; short and without control characters.
        message: String,
    },
    /// The connection ended before the answer did.
    #[error("the agent closed the connection during `{call}`")]
    Closed {
        /// The path of the request.
        call: &'static str,
    },
    /// Reading or writing failed, on the connection or on the caller's own stream.
    #[error("failed to transfer data for `{call}`")]
    Io {
        /// The path of the request.
        call: &'static str,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The request cannot be written as HTTP.
    #[error("the request cannot be sent: {detail}")]
    Request {
        /// What is wrong with it.
        detail: String,
    },
}

impl ClientError {
    /// Whether the agent answered that the named thing does not exist.
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(Code::NotFound)
    }

    /// Returns the agent's code, if the agent refused the call.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Remote { code, .. } => Some(*code),
            _ => None,
        }
    }

    pub(crate) fn remote(code: Code, message: &str) -> Self {
        Self::Remote {
            code,
            message: printable(message),
        }
    }

    pub(crate) fn request(detail: impl std::fmt::Display) -> Self {
        Self::Request {
            detail: detail.to_string(),
        }
    }

    pub(crate) fn protocol(call: &'static str, detail: impl std::fmt::Display) -> Self {
        // Parsers quote what they could not parse, which is the agent's text.
        Self::Protocol {
            call,
            detail: printable(&detail.to_string()),
        }
    }

    pub(crate) fn frame(call: &'static str, error: FrameError) -> Self {
        match error {
            FrameError::TooLarge { max, .. } => Self::TooLarge {
                call,
                part: "message",
                max,
            },
            FrameError::Truncated => Self::Closed { call },
            other => Self::protocol(call, other),
        }
    }

    pub(crate) fn hyper(call: &'static str, max_header_len: usize, error: hyper::Error) -> Self {
        if error.is_parse_too_large() {
            return Self::TooLarge {
                call,
                part: "header",
                max: max_header_len,
            };
        }
        if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
            return Self::Closed { call };
        }
        if let Some(source) = io_cause(&error) {
            return if is_hang_up(&source) {
                Self::Closed { call }
            } else {
                Self::Io { call, source }
            };
        }
        Self::protocol(call, error)
    }
}

fn is_hang_up(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof
    )
}

/// Finds the I/O error under a HTTP one and returns an equal one, since sources cannot be moved out.
fn io_cause(error: &dyn std::error::Error) -> Option<io::Error> {
    let mut next = error.source();
    while let Some(cause) = next {
        if let Some(io) = cause.downcast_ref::<io::Error>() {
            // How hyper reports a malformed chunk; the agent caused it, not the connection.
            let is_malformed = matches!(
                io.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData
            );
            return (!is_malformed).then(|| match io.raw_os_error() {
                Some(code) => io::Error::from_raw_os_error(code),
                None => io::Error::new(io.kind(), io.to_string()),
            });
        }
        next = cause.source();
    }
    None
}

/// Replaces characters of an agent's text that could harm a terminal or a log.
fn printable(text: &str) -> String {
    text.chars()
        .take(MAX_MESSAGE_CHARS)
        .map(|c| match c {
            '\n' | '\t' => ' ',
            // Also the marks that reorder text: with them one line can look like another.
            c if c.is_control()
                || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
            {
                char::REPLACEMENT_CHARACTER
            }
            c => c,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_the_agent_is_made_harmless_for_terminals() {
        let error = ClientError::remote(
            Code::Internal,
            &format!("a\x1b[2Jb\u{202e}c\n{}", "x".repeat(5000)),
        );
        let text = error.to_string();
        assert!(text.starts_with("a\u{fffd}[2Jb\u{fffd}c x"), "{text}");
        assert!(text.len() < 1100, "{}", text.len());
    }
}
