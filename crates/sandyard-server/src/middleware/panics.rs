//! A handler that panics answers 500 instead of cutting the connection.

use std::panic::AssertUnwindSafe;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use sandyard_core::ErrorKind;

use crate::error::ApiError;

/// Turns a panic into an answer. What it said is on standard error already, by the panic hook.
pub(crate) async fn catch(request: Request, next: Next) -> Response {
    // The request is not read again, so no half-changed state can be seen.
    AssertUnwindSafe(next.run(request))
        .catch_unwind()
        .await
        .unwrap_or_else(|_| {
            ApiError::new(ErrorKind::Internal, "something went wrong on our side").into_response()
        })
}
