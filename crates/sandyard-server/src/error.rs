//! Failures as the native dialect answers them: `{"detail", "code", "hint", "field"}`.
//!
//! The answer carries its [`ErrorBody`] as an extension too, so that another dialect's middleware can say it in its own way.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sandyard_agent_client::ClientError;
use sandyard_auth::AuthError;
use sandyard_core::ErrorKind;
use sandyard_service::{PartialOutput, ServiceError, Shortage};
use serde::Serialize;
use utoipa::ToSchema;

/// Error response of the native and the Docker-style API.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    /// What went wrong, for people.
    pub detail: String,
    /// Machine-readable error code, stable between versions, for example `not_found`.
    pub code: String,
    /// What to do about the error, if there is advice.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub hint: Option<String>,
    /// Request field or parameter that caused the error, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub field: Option<String>,
    #[serde(flatten)]
    pub partial_output: PartialOutputFields,
}

/// Output of a command that exceeded its `timeout` and was killed. Present only in the 408 response to a command.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub(crate) struct PartialOutputFields {
    /// Standard output of the command until it was killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    stdout: Option<String>,
    /// Standard error of the command until it was killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    stderr: Option<String>,
    /// Standard output followed by standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    output: Option<String>,
    /// Whether the command wrote more than the response holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    is_truncated: Option<bool>,
    /// Process ID of the command inside the sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pid: Option<u32>,
}

impl From<Option<Box<PartialOutput>>> for PartialOutputFields {
    fn from(partial: Option<Box<PartialOutput>>) -> Self {
        let Some(partial) = partial else {
            return Self::default();
        };
        Self {
            output: Some(format!("{}{}", partial.stdout, partial.stderr)),
            stdout: Some(partial.stdout),
            stderr: Some(partial.stderr),
            is_truncated: Some(partial.is_truncated),
            pid: Some(partial.pid),
        }
    }
}

/// A result whose failure is a failed request.
pub(crate) type ApiResult<T> = Result<T, ApiError>;

/// What most handlers return.
pub(crate) type Reply<T> = ApiResult<Json<T>>;

/// A failed request.
#[derive(Debug)]
pub struct ApiError {
    /// What failed. Boxed, because most results are not failures and are moved often.
    pub error: Box<ServiceError>,
    /// Which field is meant, where that is only known from the request itself.
    field: Option<String>,
}

impl ApiError {
    /// A failure of `kind`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        ServiceError::new(kind, message).into()
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.error.hint = Some(hint.into());
        self
    }

    /// Which field of the request is meant.
    pub(crate) fn field_name(&self) -> Option<String> {
        let field = self.field.clone();
        field.or_else(|| self.error.field.map(str::to_owned))
    }

    /// Adds which field of the request is meant.
    #[must_use]
    pub fn field(mut self, field: Option<String>) -> Self {
        self.field = field;
        self
    }
}

impl From<ServiceError> for ApiError {
    fn from(error: ServiceError) -> Self {
        Self {
            error: Box::new(error),
            field: None,
        }
    }
}

impl From<ClientError> for ApiError {
    fn from(error: ClientError) -> Self {
        ServiceError::from(error).into()
    }
}

impl From<Shortage> for ApiError {
    fn from(error: Shortage) -> Self {
        ServiceError::from(error).into()
    }
}

impl From<AuthError> for ApiError {
    fn from(error: AuthError) -> Self {
        let error = match error {
            // The service's message for a failure of the store names the cause.
            AuthError::Store(error) => return ServiceError::from(error).into(),
            error => error,
        };
        let mut service_error = ServiceError::new(error.kind(), error.to_string());
        service_error.hint = error.hint().map(str::to_owned);
        if let AuthError::Invalid { field, .. } = &error {
            service_error.field = Some(field);
        }
        service_error.retry_after_s = error.retry_after_s().or(service_error.retry_after_s);
        service_error.source(error).into()
    }
}

/// The status of each kind; the one place where the contract's table of errors stands.
pub(crate) fn status_of(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::BadRequest => StatusCode::BAD_REQUEST,
        ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorKind::Forbidden => StatusCode::FORBIDDEN,
        ErrorKind::SandboxNotFound | ErrorKind::FileNotFound | ErrorKind::NotFound => {
            StatusCode::NOT_FOUND
        }
        ErrorKind::TimedOut => StatusCode::REQUEST_TIMEOUT,
        ErrorKind::Conflict | ErrorKind::Busy => StatusCode::CONFLICT,
        ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::Invalid | ErrorKind::NotText | ErrorKind::Unsupported => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        ErrorKind::QuotaExceeded | ErrorKind::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::NoSpace => StatusCode::INSUFFICIENT_STORAGE,
        ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        ErrorKind::ProviderFailed | ErrorKind::AgentFailed | ErrorKind::PortClosed => {
            StatusCode::BAD_GATEWAY
        }
        ErrorKind::Unavailable | ErrorKind::NoCapacity => StatusCode::SERVICE_UNAVAILABLE,
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let error = *self.error;
        let status = status_of(error.kind);
        if status.is_server_error() {
            tracing::error!(
                error.code = error.kind.code(),
                error.cause = %Chain(&error),
                "Request failed"
            );
        }
        let body = ErrorBody {
            detail: error.message,
            code: error.kind.code().to_owned(),
            hint: error.hint,
            field: self.field.or(error.field.map(str::to_owned)),
            partial_output: error.partial_output.into(),
        };
        let mut response = error_response(status, body);
        if let Some(seconds) = error.retry_after_s {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// An answer that carries its body for other dialects too.
pub(crate) fn error_response(status: StatusCode, body: ErrorBody) -> Response {
    let mut response = (status, Json(&body)).into_response();
    if status == StatusCode::UNAUTHORIZED {
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response.extensions_mut().insert(body);
    response
}

/// An error and its causes, the outermost first.
pub(crate) fn chain<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| error.source())
}

/// Prints an error with its causes.
struct Chain<'a>(&'a (dyn std::error::Error + 'static));

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        for cause in chain(self.0).skip(1) {
            write!(f, ": {cause}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_an_error_status() {
        for kind in ErrorKind::ALL {
            let status = status_of(kind);
            assert!(
                status.is_client_error() || status.is_server_error(),
                "{kind:?}"
            );
        }
    }

    #[test]
    fn missing_credentials_say_which_are_wanted() {
        let response = ApiError::new(ErrorKind::Unauthenticated, "no").into_response();
        assert_eq!(response.headers()[header::WWW_AUTHENTICATE], "Bearer");
    }
}
