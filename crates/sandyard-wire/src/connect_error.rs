//! How a call fails: Connect's codes, and the JSON body that carries them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json::null_default;

/// Declares the codes with their names and HTTP statuses.
macro_rules! codes {
    ($($(#[$meta:meta])* $variant:ident $name:literal $status:literal,)+) => {
        /// Why a call failed: the codes of the Connect protocol.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[$meta])* $variant,)+
        }

        impl Code {
            /// Every code there is.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the code's name on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// Returns the HTTP status of a unary call that failed this way.
            pub fn http_status(self) -> u16 {
                match self { $(Self::$variant => $status,)+ }
            }

            /// Finds a code by its name on the wire.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

codes! {
    /// The caller went away.
    Canceled "canceled" 499,
    /// No code fits, or the answer had none.
    Unknown "unknown" 500,
    /// The request is invalid, whatever the state.
    InvalidArgument "invalid_argument" 400,
    /// Time ran out.
    DeadlineExceeded "deadline_exceeded" 504,
    /// The named thing does not exist.
    NotFound "not_found" 404,
    /// The thing to create exists already.
    AlreadyExists "already_exists" 409,
    /// The caller may not do this.
    PermissionDenied "permission_denied" 403,
    /// A limit is reached.
    ResourceExhausted "resource_exhausted" 429,
    /// The current state does not allow the call.
    FailedPrecondition "failed_precondition" 400,
    /// A conflict with another call; a retry may succeed.
    Aborted "aborted" 409,
    /// A number is outside the valid range.
    OutOfRange "out_of_range" 400,
    /// There is no such call.
    Unimplemented "unimplemented" 501,
    /// An internal error.
    Internal "internal" 500,
    /// Temporarily unavailable; a retry may succeed.
    Unavailable "unavailable" 503,
    /// Data is gone or damaged.
    DataLoss "data_loss" 500,
    /// The caller is not authenticated.
    Unauthenticated "unauthenticated" 401,
}

impl Code {
    /// The code that fits an HTTP status, for a reply whose body names none.
    pub fn from_http_status(status: u16) -> Self {
        match status {
            400 => Self::InvalidArgument,
            401 => Self::Unauthenticated,
            403 => Self::PermissionDenied,
            404 => Self::NotFound,
            409 => Self::AlreadyExists,
            413 | 429 | 507 => Self::ResourceExhausted,
            499 => Self::Canceled,
            500 => Self::Internal,
            501 | 505 => Self::Unimplemented,
            502 | 503 => Self::Unavailable,
            504 => Self::DeadlineExceeded,
            _ => Self::Unknown,
        }
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Option::<String>::deserialize(deserializer)?;
        Ok(name
            .and_then(|name| Self::from_name(&name))
            .unwrap_or(Self::Unknown))
    }
}

/// A failed call: the body of a unary answer, or part of a stream's last frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ConnectError {
    /// The reason, for programs.
    #[serde(default = "unknown")]
    pub code: Code,
    /// The reason, for people.
    #[serde(default, deserialize_with = "null_default")]
    pub message: String,
}

fn unknown() -> Code {
    Code::Unknown
}

impl ConnectError {
    /// Creates an error from a code and a message.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// An error for something that does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Code::NotFound, message)
    }

    /// An error for an invalid request.
    pub fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// An internal error.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, message)
    }
}

/// The payload of a stream's last frame.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndStream {
    /// Why the stream failed; absent when it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ConnectError>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_found_by_its_own_name() {
        for &code in Code::ALL {
            assert_eq!(Code::from_name(code.as_str()), Some(code));
        }
    }

    #[test]
    fn statuses_of_the_common_codes_lead_back_to_them() {
        for code in [
            Code::NotFound,
            Code::AlreadyExists,
            Code::InvalidArgument,
            Code::Unauthenticated,
            Code::Internal,
        ] {
            assert_eq!(Code::from_http_status(code.http_status()), code);
        }
    }

    #[test]
    fn an_error_with_unknown_code_and_extra_fields_is_still_read() {
        let error: ConnectError =
            serde_json::from_str(r#"{"code":"new_thing","details":[{}]}"#).unwrap();
        assert_eq!(error, ConnectError::new(Code::Unknown, ""));
    }

    #[test]
    fn the_end_of_a_good_stream_is_an_empty_object() {
        assert_eq!(serde_json::to_string(&EndStream::default()).unwrap(), "{}");
    }
}
