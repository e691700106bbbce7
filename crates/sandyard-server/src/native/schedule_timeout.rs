//! `POST /sandboxes/schedule-timeout` = `/sandboxes/timeout`.

use crate::actions::set_timeout::{self, SetTimeout, TimeoutReply};
use crate::prelude::*;

/// Set the idle timeout
///
/// Replaces the idle timeout of a sandbox and restarts it. Later activity restarts it with the new value.
#[utoipa::path(
    post, path = "/sandboxes/schedule-timeout", tag = "sandboxes", request_body = SetTimeout,
    responses((status = 200, description = "Idle timeout set.", body = TimeoutReply))
)]
pub(crate) async fn schedule_timeout(
    call: Call,
    Body(request): Body<SetTimeout>,
) -> Reply<TimeoutReply> {
    set_timeout::set_timeout(&call, request).await.map(Json)
}
