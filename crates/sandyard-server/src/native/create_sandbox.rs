//! `POST /sandboxes/create`.

use axum::Json;
use axum::extract::State;

use crate::access::Authenticated;
use crate::actions::create::{self, CreateSandbox};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Body, IdempotencyKey};
use crate::links::Links;
use crate::model::sandbox::SandboxReply;

/// Makes a sandbox.
#[utoipa::path(
    post, path = "/sandboxes/create", operation_id = "create_sandbox", tag = "sandboxes",
    params(IdempotencyKey), request_body = CreateSandbox,
    responses((status = 200, description = "It runs.", body = SandboxReply))
)]
pub(crate) async fn create_sandbox(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    links: Links,
    key: IdempotencyKey,
    Body(request): Body<CreateSandbox>,
) -> Result<Json<SandboxReply>, ApiError> {
    create::create_sandbox(&app, &caller, &links, key, request)
        .await
        .map(Json)
}
