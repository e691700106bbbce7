//! `POST /sandboxes/schedule-timeout` = `/sandboxes/timeout`.

use axum::Json;
use axum::extract::State;

use crate::access::Authenticated;
use crate::actions::set_timeout::{self, SetTimeout, TimeoutReply};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::Body;

/// Gives a sandbox a new time. It stays the sandbox's own: later activity restarts it with this value.
#[utoipa::path(
    post, path = "/sandboxes/schedule-timeout", operation_id = "schedule_timeout", tag = "sandboxes",
    request_body = SetTimeout,
    responses((status = 200, description = "It is so.", body = TimeoutReply))
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
