//! Error responses that all operations share: one description and example for each status, in the form of each dialect.

use std::sync::LazyLock;

use serde::Deserialize;
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

/// Error response that many operations share. They are in `errors.json`.
#[derive(Deserialize)]
struct SharedError {
    status: u16,
    name: String,
    description: String,
    /// Code and message of the example.
    code: String,
    message: String,
    /// Which operations may return it.
    scope: ErrorScope,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ErrorScope {
    All,
    /// Operations that require credentials.
    Guarded,
    /// Guarded operations of E2B's dialect.
    E2b,
}

static ERRORS: LazyLock<Vec<SharedError>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("errors.json")).expect("the shared errors are valid JSON")
});

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
        let SharedError { code, message, .. } = error;
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
    for error in ERRORS.iter() {
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

#[cfg(test)]
mod tests {
    use sandyard_core::ErrorKind;

    use super::*;

    #[test]
    fn examples_have_the_status_of_their_code() {
        for error in ERRORS.iter() {
            let kind = ErrorKind::ALL
                .into_iter()
                .find(|kind| kind.code() == error.code)
                .unwrap();
            let status = match error.scope {
                ErrorScope::E2b => e2b::status_of(kind),
                _ => crate::error::status_of(kind),
            };
            assert_eq!(status.as_u16(), error.status, "{}", error.name);
        }
    }
}
