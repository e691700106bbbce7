//! The registry of failures, which clients of every dialect branch on.

use serde::{Deserialize, Serialize};

/// The kind of a failure. Each dialect maps every kind to its own answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The request cannot be parsed.
    BadRequest,
    /// The credentials are missing or invalid.
    Unauthenticated,
    /// The credentials do not allow this.
    Forbidden,
    /// The sandbox does not exist, or the caller may not see it.
    SandboxNotFound,
    /// The file or directory does not exist in the sandbox.
    FileNotFound,
    /// A template, user, key, process or other item does not exist.
    NotFound,
    /// The operation took longer than allowed; a running command was killed.
    TimedOut,
    /// The status of the sandbox does not allow this, or the item already exists.
    Conflict,
    /// Another operation is changing the same sandbox and did not finish in time.
    Busy,
    /// The request body is too large.
    TooLarge,
    /// A field has an invalid value.
    Invalid,
    /// The file is not text.
    NotText,
    /// The sandbox's provider does not support this.
    Unsupported,
    /// The caller has reached its quota.
    QuotaExceeded,
    /// Too many requests.
    RateLimited,
    /// The disk of the sandbox, or of the server's data, is full.
    NoSpace,
    /// An internal error of the server.
    Internal,
    /// The sandbox's provider failed.
    ProviderFailed,
    /// The agent inside the sandbox failed, or its answer is invalid.
    AgentFailed,
    /// Nothing listens on that port of the sandbox.
    PortClosed,
    /// The server is not ready, or something that it needs is unreachable.
    Unavailable,
    /// The host has no capacity for another sandbox.
    NoCapacity,
}

impl ErrorKind {
    /// All kinds.
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

    /// The stable code in answers.
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
