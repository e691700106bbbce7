//! The registry of failures: what clients branch on, whatever the dialect.

use serde::{Deserialize, Serialize};

/// What kind of failure it is. Each dialect owns one exhaustive match from here to its own answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The request cannot be read at all.
    BadRequest,
    /// No credentials, or they are not good.
    Unauthenticated,
    /// Good credentials without the right to do this.
    Forbidden,
    /// No such sandbox, or not the caller's.
    SandboxNotFound,
    /// No such file or folder in the sandbox.
    FileNotFound,
    /// No such template, user, key, process or other thing.
    NotFound,
    /// It took longer than was allowed; whatever ran was killed.
    TimedOut,
    /// The sandbox is in a state that does not allow this, or the thing exists already.
    Conflict,
    /// Somebody else is changing the same sandbox and did not finish in time.
    Busy,
    /// More bytes than are taken.
    TooLarge,
    /// A field has a value that makes no sense.
    Invalid,
    /// The file is not text.
    NotText,
    /// Where the sandbox runs, this cannot be done.
    Unsupported,
    /// The caller has as many sandboxes as it may have.
    QuotaExceeded,
    /// Too many requests.
    RateLimited,
    /// The disk of the sandbox, or of the server's data, is full.
    NoSpace,
    /// Our fault.
    Internal,
    /// Where the sandbox runs, something failed.
    ProviderFailed,
    /// The program inside the sandbox failed or talks nonsense.
    AgentFailed,
    /// Nothing listens on that port of the sandbox.
    PortClosed,
    /// Not ready, or what is needed cannot be reached at the moment.
    Unavailable,
    /// The host has no room for another sandbox.
    NoCapacity,
}

impl ErrorKind {
    /// All of them.
    pub const ALL: [Self; 22] = [
        Self::BadRequest,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::SandboxNotFound,
        Self::FileNotFound,
        Self::NotFound,
        Self::TimedOut,
        Self::Conflict,
        Self::Busy,
        Self::TooLarge,
        Self::Invalid,
        Self::NotText,
        Self::Unsupported,
        Self::QuotaExceeded,
        Self::RateLimited,
        Self::NoSpace,
        Self::Internal,
        Self::ProviderFailed,
        Self::AgentFailed,
        Self::PortClosed,
        Self::Unavailable,
        Self::NoCapacity,
    ];

    /// The stable word in answers.
    pub fn code(self) -> &'static str {
        match self {
            Self::BadRequest => "bad_request",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::SandboxNotFound => "sandbox_not_found",
            Self::FileNotFound => "file_not_found",
            Self::NotFound => "not_found",
            Self::TimedOut => "timed_out",
            Self::Conflict => "conflict",
            Self::Busy => "busy",
            Self::TooLarge => "too_large",
            Self::Invalid => "invalid",
            Self::NotText => "not_text",
            Self::Unsupported => "unsupported",
            Self::QuotaExceeded => "quota_exceeded",
            Self::RateLimited => "rate_limited",
            Self::NoSpace => "no_space",
            Self::Internal => "internal",
            Self::ProviderFailed => "provider_failed",
            Self::AgentFailed => "agent_failed",
            Self::PortClosed => "port_closed",
            Self::Unavailable => "unavailable",
            Self::NoCapacity => "no_capacity",
        }
    }
}
