//! `POST /sandboxes/schedule-timeout` = `/sandboxes/timeout`.

use axum::Json;
use axum::extract::State;

use crate::access::Authenticated;
use crate::actions::set_timeout::{self, SetTimeout, TimeoutReply};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::Body;

/// Set the idle timeout
///
/// Replaces the idle timeout of a sandbox and restarts it. Later activity restarts it with the new value.
#[utoipa::path(
    post, path = "/sandboxes/schedule-timeout", operation_id = "schedule_timeout", tag = "sandboxes",
    request_body = SetTimeout,
    responses((status = 200, description = "Idle timeout set.", body = TimeoutReply))
)]
pub(crate) async fn schedule_timeout(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    Body(request): Body<SetTimeout>,
) -> Result<Json<TimeoutReply>, ApiError> {
    set_timeout::set_timeout(&app, &caller, request)
        .await
        .map(Json)
}
