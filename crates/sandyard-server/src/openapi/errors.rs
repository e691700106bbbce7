//! Error responses that all operations share: one description and example for each status, in the form of each dialect.

use sandyard_core::ErrorKind;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::access::Access;
use crate::e2b::{self, E2bError};
use crate::envelope::{self, EnvelopedError};
use crate::error::ErrorBody;

/// Form of the error responses of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// The native and the Docker-style API.
    Native,
    Enveloped,
    E2b,
}

/// Error response that many operations share.
struct SharedError {
    status: u16,
    name: &'static str,
    description: &'static str,
    /// Kind and message of the example.
    example: (ErrorKind, &'static str),
    /// Which operations may return it.
    scope: ErrorScope,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ErrorScope {
    All,
    /// Operations that require credentials.
    Guarded,
    /// Guarded operations of E2B's dialect.
    E2b,
}

impl SharedError {
    const fn new(
        scope: ErrorScope,
        status: u16,
        name: &'static str,
        description: &'static str,
        example: (ErrorKind, &'static str),
    ) -> Self {
        Self {
            status,
            name,
            description,
            example,
            scope,
        }
    }
}

const ERRORS: [SharedError; 14] = [
    SharedError::new(
        ErrorScope::All,
        400,
        "BadRequest",
        "Request malformed: it could not be parsed.",
        (
            ErrorKind::BadRequest,
            "the body is not valid JSON: EOF while parsing a value at line 1 column 0",
        ),
    ),
    SharedError::new(
        ErrorScope::All,
        401,
        "Unauthorized",
        "Credentials missing or invalid.",
        (ErrorKind::Unauthenticated, "the API key is not valid"),
    ),
    SharedError::new(
        ErrorScope::Guarded,
        403,
        "Forbidden",
        "Credentials valid, but they do not permit this operation.",
        (
            ErrorKind::Forbidden,
            "this operation requires the scope `manage`",
        ),
    ),
    SharedError::new(
        ErrorScope::Guarded,
        404,
        "NotFound",
        "Sandbox or other resource not found, or not visible to you.",
        (
            ErrorKind::SandboxNotFound,
            "there is no sandbox `k4m2vqx0c3h5tz1p6wda`",
        ),
    ),
    SharedError::new(
        ErrorScope::Guarded,
        408,
        "Timeout",
        "Operation exceeded its time limit. A command was killed; the response holds its output until then.",
        (
            ErrorKind::TimedOut,
            "the command exceeded its timeout of 60 s",
        ),
    ),
    SharedError::new(
        ErrorScope::Guarded,
        409,
        "Conflict",
        "Current state does not allow the operation, for example because another one is in progress.",
        (
            ErrorKind::Conflict,
            "the volume `datasets` is used by a sandbox",
        ),
    ),
    SharedError::new(
        ErrorScope::All,
        413,
        "BodyTooLarge",
        "Request body too large.",
        (ErrorKind::TooLarge, "the request body is larger than 1 MiB"),
    ),
    SharedError::new(
        ErrorScope::All,
        422,
        "InvalidField",
        "Field or parameter missing or invalid; the response names it.",
        (
            ErrorKind::Invalid,
            "`timeout` must be a whole number between 1 and 31536000 (got 0)",
        ),
    ),
    SharedError::new(
        ErrorScope::All,
        429,
        "TooManyRequests",
        "Too many requests, or the maximum number of sandboxes is reached. Retry after `Retry-After` seconds.",
        (
            ErrorKind::QuotaExceeded,
            "the user has as many sandboxes as allowed (100)",
        ),
    ),
    SharedError::new(
        ErrorScope::All,
        500,
        "InternalError",
        "Internal server error. The server's log has the details under the request ID.",
        (ErrorKind::Internal, "internal server error"),
    ),
    SharedError::new(
        ErrorScope::Guarded,
        502,
        "ProviderFailed",
        "Provider of the sandbox failed or gave an invalid response.",
        (ErrorKind::ProviderFailed, "the provider `docker` failed"),
    ),
    SharedError::new(
        ErrorScope::All,
        503,
        "Unavailable",
        "Server is starting or stopping, or has no capacity left. Retry after `Retry-After` seconds.",
        (
            ErrorKind::Unavailable,
            "the provider `docker` is unreachable",
        ),
    ),
    SharedError::new(
        ErrorScope::E2b,
        504,
        "ProviderTimeout",
        "Provider of the sandbox did not answer in time.",
        (ErrorKind::TimedOut, "the provider did not answer in time"),
    ),
    SharedError::new(
        ErrorScope::Guarded,
        507,
        "DiskFull",
        "Disk of the sandbox is full.",
        (ErrorKind::NoSpace, "the disk of the sandbox is full"),
    ),
];

impl Dialect {
    const ALL: [Self; 3] = [Self::Native, Self::Enveloped, Self::E2b];

    pub(super) fn of(path: &str) -> Self {
        if envelope::is_enveloped(path) {
            Self::Enveloped
        } else if path.starts_with(e2b::PREFIX) {
            Self::E2b
        } else {
            Self::Native
        }
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Native => "",
            Self::Enveloped => "Enveloped",
            Self::E2b => "E2b",
        }
    }

    fn example(self, error: &SharedError) -> Value {
        let (kind, message) = error.example;
        let code = kind.code();
        match self {
            Self::Native => json!({"detail": message, "code": code}),
            Self::Enveloped => {
                json!({"code": error.status, "msg": message, "data": null, "trace_id": "01JCZ8M4T6", "error": code})
            }
            Self::E2b => json!({"code": error.status, "message": message}),
        }
    }

    fn media(self, error: &SharedError) -> Value {
        let schema = match self {
            Self::Native => ErrorBody::name(),
            Self::Enveloped => EnvelopedError::name(),
            Self::E2b => E2bError::name(),
        };
        json!({"schema": {"$ref": format!("#/components/schemas/{schema}")}, "example": self.example(error)})
    }
}

/// The body of an error with this status.
pub(super) fn media(dialect: Dialect, status: &str) -> Value {
    let error = ERRORS
        .iter()
        .find(|error| error.status.to_string() == status);
    error.map_or_else(|| json!({}), |error| dialect.media(error))
}

/// Adds the errors that an operation may return and does not describe itself.
pub(super) fn add(responses: &mut Map<String, Value>, dialect: Dialect, access: Access) {
    let is_guarded = access != Access::Public;
    for error in &ERRORS {
        let applies = match error.scope {
            ErrorScope::All => true,
            ErrorScope::Guarded => is_guarded,
            ErrorScope::E2b => is_guarded && dialect == Dialect::E2b,
        };
        let name = format!("#/components/responses/{}{}", dialect.prefix(), error.name);
        if applies {
            responses
                .entry(error.status.to_string())
                .or_insert_with(|| json!({"$ref": name}));
        }
    }
}

/// The shared responses of all dialects, by name.
pub(super) fn responses() -> Map<String, Value> {
    let mut responses = Map::new();
    for dialect in Dialect::ALL {
        let is_possible =
            |error: &&SharedError| error.scope != ErrorScope::E2b || dialect == Dialect::E2b;
        for error in ERRORS.iter().filter(is_possible) {
            let mut headers = json!({"X-Request-ID": {"$ref": "#/components/headers/RequestId"}});
            if error.status == 401 {
                headers["WWW-Authenticate"] =
                    json!({"$ref": "#/components/headers/WwwAuthenticate"});
            }
            if matches!(error.status, 429 | 503) {
                headers["Retry-After"] = json!({"$ref": "#/components/headers/RetryAfter"});
            }
            let response = json!({
                "description": error.description,
                "headers": headers,
                "content": {"application/json": dialect.media(error)},
            });
            responses.insert(format!("{}{}", dialect.prefix(), error.name), response);
        }
    }
    responses
}

/// The shared headers of responses, by name.
pub(super) fn headers() -> Value {
    json!({
        "RequestId": {
            "description": "ID of the request: the one that the client sent, or a generated one.",
            "schema": {"type": "string"},
        },
        "WwwAuthenticate": {
            "description": "Way to authenticate.",
            "schema": {"type": "string"},
        },
        "RetryAfter": {
            "description": "Seconds to wait before the next attempt.",
            "schema": {"type": "integer"},
        },
    })
}
