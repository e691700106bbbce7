//! The data plane: requests for what runs in a sandbox, its agent first of all.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

use super::door::Plane;
use crate::app::App;

/// Answers requests of the data plane; lets all others pass.
pub(crate) async fn intercept(State(_app): State<App>, request: Request, next: Next) -> Response {
    match request.extensions().get::<Plane>() {
        Some(Plane::Data(_)) => next.run(request).await,
        _ => next.run(request).await,
    }
}
