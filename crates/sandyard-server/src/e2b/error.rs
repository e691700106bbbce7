//! Failures as this dialect's clients read them: `{"code": <status>, "message": …}`, and nothing else will do.

use axum::Json;
use axum::extract::Request;
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::door::Plane;
use crate::error::ErrorBody;

/// A failure in this dialect.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct E2bError {
    /// The HTTP status.
    pub(crate) code: u16,
    /// What went wrong, and what to do about it.
    pub(crate) message: String,
}

/// Says the failures of the control plane in its own way.
pub(crate) async fn translate(request: Request, next: Next) -> Response {
    if request.extensions().get::<Plane>() != Some(&Plane::Control) {
        return next.run(request).await;
    }
    let mut response = next.run(request).await;
    match response.extensions_mut().remove::<ErrorBody>() {
        Some(error) => reword(response, error),
        None => response,
    }
}

fn reword(response: Response, error: ErrorBody) -> Response {
    let body = E2bError {
        code: response.status().as_u16(),
        message: match error.hint {
            Some(hint) => format!("{} ({hint})", error.detail),
            None => error.detail,
        },
    };
    let (mut parts, _) = response.into_parts();
    let worded = Json(body).into_response();
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.remove(header::CONTENT_TYPE);
    parts.headers.extend(worded.headers().clone());
    Response::from_parts(parts, worded.into_body())
}
