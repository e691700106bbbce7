//! Failures of the service, in the words of the registry.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;

use sandyard_agent_client::ClientError;
use sandyard_agent_client::wire::Code;
use sandyard_core::ErrorKind;
use sandyard_provider::{ProviderError, ProviderErrorKind};
use sandyard_store::StoreError;

use crate::request::PartialOutput;

/// When a client may repeat a request that found the data disk full.
const FULL_DISK_RETRY_S: u64 = 5;

/// Result of a verb.
pub type ServiceResult<T> = Result<T, ServiceError>;

/// A failed verb. The message is for the caller's eyes; the source is for the log.
#[derive(Debug)]
pub struct ServiceError {
    /// What clients branch on.
    pub kind: ErrorKind,
    /// What went wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Which field of the request is meant.
    pub field: Option<&'static str>,
    /// When trying again makes sense.
    pub retry_after_s: Option<u64>,
    /// What a command wrote before it was killed for its time-out.
    pub partial_output: Option<Box<PartialOutput>>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl ServiceError {
    /// A failure of `kind`.
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

    /// A field has a value that makes no sense.
    pub fn invalid(field: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message).field(field)
    }

    /// There is no such sandbox, or it is not the caller's: the two look the same.
    pub fn no_sandbox(name: &str) -> Self {
        // What the caller sent is shown back, so it is cut: it may be anything.
        let shown: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
        Self::new(ErrorKind::SandboxNotFound, format!("no sandbox `{shown}`"))
            .hint("GET /sandboxes lists yours")
    }

    /// Adds which field of the request is meant.
    #[must_use]
    pub fn field(mut self, field: &'static str) -> Self {
        self.field = Some(field);
        self
    }

    /// Adds what to do about it.
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

    /// Adds why.
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
    /// The message says why. Host paths stay in the log.
    fn from(error: StoreError) -> Self {
        let described = match &error {
            StoreError::Unavailable { .. } => {
                Self::new(ErrorKind::Unavailable, "the database cannot be reached")
            }
            StoreError::Full { disk, .. } => {
                let mut full = Self::new(ErrorKind::NoSpace, full_disk_message(disk))
                    .hint("free space on the server's data disk, then try again");
                full.retry_after_s = Some(FULL_DISK_RETRY_S);
                full
            }
            StoreError::DiskFailed { reason, .. } => Self::new(
                ErrorKind::Unavailable,
                format!("the disk of the database fails: {reason}"),
            )
            .hint("check the server's data disk"),
            StoreError::BadCursor { .. } => {
                return Self::invalid("cursor", "this is no cursor of an earlier page");
            }
            StoreError::Refused { doing, .. } => Self::new(
                ErrorKind::Internal,
                format!("the database refused: {doing}"),
            )
            .hint("the server's log has the cause"),
            _ => Self::new(ErrorKind::Internal, "the database refused")
                .hint("the server's log has the cause"),
        };
        described.source(error)
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
        let known = Self::new(kind, error.message.clone());
        // Rounded up: a moment too early is too early.
        let wait_s = error
            .retry_after
            .map(|wait| wait.as_secs() + u64::from(wait.subsec_nanos() > 0));
        Self {
            hint: error.hint.clone(),
            retry_after_s: wait_s.or(known.retry_after_s),
            ..known
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
            // An agent does not hang up in the middle; it ends, because its sandbox does.
            (ClientError::Closed { .. }, _) => ErrorKind::Conflict,
            (ClientError::Request { .. }, _) | (_, Some(Code::InvalidArgument)) => {
                ErrorKind::Invalid
            }
            (_, Some(Code::NotFound)) => ErrorKind::FileNotFound,
            // How agents say that the sandbox has no such user; with any other words it is our token that is wrong.
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
                "the sandbox ended while it was asked: it was stopped or deleted, or ran out of memory".to_owned()
            }
            other => other.to_string(),
        };
        Self::new(kind, message).source(error)
    }
}
