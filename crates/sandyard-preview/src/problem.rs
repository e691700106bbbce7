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
    /// The sandbox runs, and its template has no VS Code.
    NoEditor,
    /// The sandbox runs, and has no tool server on this port.
    NoTools,
    /// VS Code was asked for on a host that is not its own, and there is none that is.
    NeedsDomain,
    /// There is no such sandbox, or not any more.
    NotFound,
    /// The sandbox is paused, and waking it failed.
    CannotWake,
    /// The preview is private and there is no token.
    NeedsLink,
    /// The port is the tool server's, and there is no key.
    NeedsKey,
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
pub(crate) struct ProblemText {
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
            Self::PortClosed | Self::NoTools | Self::BadResponse => StatusCode::BAD_GATEWAY,
            Self::NotFound | Self::NoEditor => StatusCode::NOT_FOUND,
            Self::NeedsDomain => StatusCode::CONFLICT,
            Self::CannotWake | Self::Unreachable => StatusCode::SERVICE_UNAVAILABLE,
            Self::NeedsLink | Self::NeedsKey => StatusCode::UNAUTHORIZED,
            Self::Refused => StatusCode::FORBIDDEN,
            Self::Timeout => StatusCode::GATEWAY_TIMEOUT,
            Self::BadRequest => StatusCode::BAD_REQUEST,
        }
    }

    /// Gives the kind in the registry.
    pub fn kind(self) -> ErrorKind {
        match self {
            Self::PortClosed | Self::NoTools => ErrorKind::PortClosed,
            Self::NotFound => ErrorKind::SandboxNotFound,
            Self::NoEditor => ErrorKind::NotFound,
            Self::NeedsDomain => ErrorKind::Conflict,
            Self::CannotWake | Self::Unreachable => ErrorKind::Unavailable,
            Self::NeedsLink | Self::NeedsKey => ErrorKind::Unauthenticated,
            Self::Refused => ErrorKind::Forbidden,
            Self::Timeout => ErrorKind::TimedOut,
            Self::BadResponse => ErrorKind::AgentFailed,
            Self::BadRequest => ErrorKind::BadRequest,
        }
    }

    /// Says it in one sentence.
    pub fn message(self, port: u16) -> String {
        self.text(port).message
    }

    pub(crate) fn text(self, port: u16) -> ProblemText {
        let text = |title, message: String, hint: &str| ProblemText {
            title,
            message,
            hint: hint.to_owned(),
        };
        match self {
            Self::PortClosed => text(
                "Nothing is listening yet",
                format!("The sandbox is running, but no program listens on port {port}."),
                &format!("Start one in the sandbox, for example `python3 -m http.server {port}`, and reload."),
            ),
            Self::NoEditor => text(
                "This sandbox has no VS Code",
                format!("The sandbox is running, but its template has no VS Code to listen on port {port}."),
                "Build a template that has it with `templates/agent/build --import`, then create a sandbox with `template: agent`.",
            ),
            Self::NoTools => text(
                "This sandbox has no tool server here",
                format!("The sandbox is running, but has no tool server on port {port}."),
                "Make a new sandbox: one that is older than a change of `sandbox.mcp_port` has it where it was.",
            ),
            Self::NeedsDomain => text(
                "VS Code needs a host of its own",
                "Below a path of this server, browsers give it neither storage nor workers, and it does not start.".to_owned(),
                "Open it on the server's own machine through `localhost`, or have the operator set a domain for previews.",
            ),
            Self::NotFound => text(
                "No such sandbox",
                "There is no sandbox of this name, or it has been deleted.".to_owned(),
                "Check the address, or create a new sandbox.",
            ),
            Self::CannotWake => text(
                "The sandbox is asleep",
                "The sandbox is paused and could not be woken.".to_owned(),
                "Try again in a moment, or resume the sandbox yourself and reload.",
            ),
            Self::NeedsLink => text(
                "This preview is private",
                "It opens with a link or a token of its owner.".to_owned(),
                "Ask for a preview link, or send the token in the header `X-Sandyard-Token`.",
            ),
            Self::NeedsKey => text(
                "The tool server wants a key",
                "It opens with an API key of the sandbox's owner.".to_owned(),
                "Send `Authorization: Bearer KEY`; `sandyard key add NAME` makes one.",
            ),
            Self::Refused => text(
                "This link does not open it",
                "The preview is private, and the link or token is not valid for it, or not any more.".to_owned(),
                "Ask for a new preview link and open it in this browser.",
            ),
            Self::Timeout => text(
                "No answer in time",
                format!("The program on port {port} took too long to answer."),
                "It may be busy or stuck: look at its output, then reload.",
            ),
            Self::BadResponse => text(
                "The answer makes no sense",
                format!("What listens on port {port} did not answer in HTTP."),
                "Check that the port serves HTTP and not TLS or another protocol, and look at the program's output.",
            ),
            Self::Unreachable => text(
                "The sandbox cannot be reached",
                "The sandbox did not take the connection.".to_owned(),
                "Try again in a moment.",
            ),
            Self::BadRequest => text(
                "This request cannot be passed on",
                "Something about the request is malformed.".to_owned(),
                "Check its length, its host and its path.",
            ),
        }
    }
}
