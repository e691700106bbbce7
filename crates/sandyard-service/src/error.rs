//! Failures of the service, by [`ErrorKind`].

use std::error::Error;
use std::fmt;
use std::path::PathBuf;

use sandyard_agent_client::ClientError;
use sandyard_agent_client::wire::Code;
use sandyard_core::ErrorKind;
use sandyard_provider::{ProviderError, ProviderErrorKind};
use sandyard_store::StoreError;

use crate::memory::Shortage;
use crate::request::PartialOutput;

/// When a client may repeat a request that found the data disk full, in seconds.
const FULL_DISK_RETRY_S: u64 = 5;
/// When a client may repeat a request that found no memory, in seconds.
const NO_MEMORY_RETRY_S: u64 = 5;

/// Result of a verb.
pub(crate) type Result<T, E = ServiceError> = std::result::Result<T, E>;

/// A failed verb. The caller sees the message; only the log shows the source.
#[derive(Debug)]
pub struct ServiceError {
    /// The kind of failure, which clients branch on.
    pub kind: ErrorKind,
    /// What failed, and why.
    pub message: String,
    /// What the caller can do.
    pub hint: Option<String>,
    /// The field of the request that is to blame.
    pub field: Option<&'static str>,
    /// Seconds after which the caller may try again.
    pub retry_after_s: Option<u64>,
    /// What a command wrote before its time-out killed it.
    pub partial_output: Option<Box<PartialOutput>>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl ServiceError {
    /// Describes a failure.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let retry_after_s = match kind {
            ErrorKind::Unavailable | ErrorKind::NoCapacity | ErrorKind::Busy => Some(1),
            ErrorKind::QuotaExceeded | ErrorKind::RateLimited => Some(5),
            _ => None,
        };
        Self {
            kind,
            message: message.into(),
            hint: None,
            field: None,
            retry_after_s,
            partial_output: None,
            source: None,
        }
    }

    /// The state of a sandbox or of another resource does not allow it.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Conflict, message)
    }

    /// Another sandbox of the same owner has the alias.
    pub(crate) fn alias_taken() -> Self {
        Self::conflict("another sandbox of yours has this alias").field("alias")
    }

    /// Another operation is in progress.
    pub fn busy(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Busy, message)
    }

    /// It took too long.
    pub fn timed_out(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::TimedOut, message)
    }

    /// A part of the server or a provider cannot be reached.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unavailable, message)
    }

    /// It failed for a reason that the caller cannot change.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// A field of the request has an invalid value.
    pub fn invalid(field: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message).field(field)
    }

    /// The sandbox does not exist, or the caller may not see it. The two look the same.
    pub fn no_sandbox(name: &str) -> Self {
        let message = format!("no sandbox `{}`", printable(name));
        Self::new(ErrorKind::SandboxNotFound, message).hint("GET /sandboxes lists yours")
    }

    /// Adds the field that is to blame.
    #[must_use]
    pub fn field(mut self, field: &'static str) -> Self {
        self.field = Some(field);
        self
    }

    /// Adds what the caller can do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds what the command wrote before it was killed.
    #[must_use]
    pub fn partial_output(mut self, output: PartialOutput) -> Self {
        self.partial_output = Some(Box::new(output));
        self
    }

    /// Adds the cause, for the log.
    #[must_use]
    pub fn source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for ServiceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<StoreError> for ServiceError {
    /// The message names the reason; host paths appear only in the log.
    fn from(error: StoreError) -> Self {
        let described = match &error {
            StoreError::Unavailable { .. } => Self::unavailable("the database is unreachable"),
            StoreError::Full { disk, .. } => {
                let mut full = Self::new(ErrorKind::NoSpace, full_disk_message(disk))
                    .hint("free space on the server's data disk, then try again");
                full.retry_after_s = Some(FULL_DISK_RETRY_S);
                full
            }
            StoreError::DiskFailed { reason, .. } => {
                Self::unavailable(format!("the disk of the database failed: {reason}"))
                    .hint("check the server's data disk")
            }
            StoreError::AliasTaken => return Self::alias_taken(),
            StoreError::BadCursor { .. } => {
                return Self::invalid("cursor", "`cursor` is not a cursor from an earlier page");
            }
            StoreError::Refused { action, .. } => {
                Self::internal(format!("the database failed: {action}"))
                    .hint("the server's log has the cause")
            }
            _ => Self::internal("the database failed").hint("the server's log has the cause"),
        };
        described.source(error)
    }
}

/// A text from a request, made safe to repeat in a message: without control characters, and cut.
pub(crate) fn printable(text: &str) -> String {
    let visible = text.chars().filter(|c| !c.is_control());
    visible.take(64).collect()
}

impl From<Shortage> for ServiceError {
    fn from(shortage: Shortage) -> Self {
        let mut error = match shortage {
            Shortage::Caller => Self::new(
                ErrorKind::RateLimited,
                "your requests and unread answers use all the memory that one caller may use",
            )
            .hint("read answers to their end, request less at a time, or try again later"),
            Shortage::Total => Self::unavailable(
                "requests and unread answers use all the memory that is set aside for them",
            )
            .hint("try again later"),
        };
        error.retry_after_s = Some(NO_MEMORY_RETRY_S);
        error
    }
}

fn full_disk_message(disk: &Option<(PathBuf, u64)>) -> String {
    match disk {
        Some((_, free)) => format!("the data disk is full: {} MB free", free / 1_000_000),
        None => "the disk of the database is full".to_owned(),
    }
}

impl From<ProviderError> for ServiceError {
    fn from(error: ProviderError) -> Self {
        let kind = match error.kind {
            ProviderErrorKind::NotFound => ErrorKind::NotFound,
            ProviderErrorKind::Conflict => ErrorKind::Conflict,
            ProviderErrorKind::Invalid => ErrorKind::Invalid,
            ProviderErrorKind::NoCapacity => ErrorKind::NoCapacity,
            ProviderErrorKind::Unsupported => ErrorKind::Unsupported,
            ProviderErrorKind::TimedOut => ErrorKind::TimedOut,
            ProviderErrorKind::Unavailable => ErrorKind::Unavailable,
            _ => ErrorKind::ProviderFailed,
        };
        let described = Self::new(kind, error.message.clone());
        // Rounded up, so that no client comes too early.
        let wait_s = error
            .retry_after
            .map(|wait| wait.as_secs() + u64::from(wait.subsec_nanos() > 0));
        Self {
            hint: error.hint.clone(),
            retry_after_s: wait_s.or(described.retry_after_s),
            ..described
        }
        .source(error)
    }
}

impl From<ClientError> for ServiceError {
    fn from(error: ClientError) -> Self {
        let kind = match (&error, error.code()) {
            (ClientError::Timeout { .. }, _) | (_, Some(Code::DeadlineExceeded)) => {
                ErrorKind::TimedOut
            }
            (ClientError::Connect { .. }, _) => ErrorKind::Unavailable,
            // An agent never closes a connection early. It ends because its sandbox does.
            (ClientError::Closed { .. }, _) => ErrorKind::Conflict,
            (ClientError::Request { .. }, _) | (_, Some(Code::InvalidArgument)) => {
                ErrorKind::Invalid
            }
            (_, Some(Code::NotFound)) => ErrorKind::FileNotFound,
            // The agent's message for an unknown user. With any other message the server's own token is wrong.
            (ClientError::Remote { message, .. }, Some(Code::Unauthenticated))
                if message.starts_with("invalid username") =>
            {
                ErrorKind::NotFound
            }
            (_, Some(Code::AlreadyExists | Code::FailedPrecondition)) => ErrorKind::Conflict,
            (_, Some(Code::PermissionDenied)) => ErrorKind::Forbidden,
            (_, Some(Code::ResourceExhausted)) => ErrorKind::NoSpace,
            _ => ErrorKind::AgentFailed,
        };
        let message = match &error {
            ClientError::Remote { message, .. } => message.clone(),
            ClientError::Connect { .. } => "the sandbox does not answer".to_owned(),
            ClientError::Closed { .. } => {
                "the sandbox ended during the request: it was stopped or deleted, or ran out of memory".to_owned()
            }
            other => other.to_string(),
        };
        Self::new(kind, message).source(error)
    }
}
