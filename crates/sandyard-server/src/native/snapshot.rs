//! `POST /sandboxes/{id}/snapshot` and `POST /sandboxes/{id}/fork`.

use axum::Json;
use axum::extract::State;

use crate::access::Authenticated;
use crate::actions::copies::{self, Fork, Snapshot};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::{Body, OptionalBody, SandboxName};
use crate::links::Links;
use crate::model::sandbox::SandboxReply;
use crate::model::template::TemplateView;

/// Keeps a sandbox's files as a template.
#[utoipa::path(
    post, path = "/sandboxes/{id}/snapshot", operation_id = "snapshot_sandbox", tag = "templates",
    params(SandboxName), request_body = Snapshot,
    responses((status = 200, description = "The template.", body = TemplateView))
)]
pub(crate) async fn snapshot_sandbox(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    name: SandboxName,
    Body(request): Body<Snapshot>,
) -> Result<Json<TemplateView>, ApiError> {
    copies::snapshot_sandbox(&app, &caller, &name.id, request)
        .await
        .map(Json)
}

/// Makes another sandbox from the files of this one as they are now.
#[utoipa::path(
    post, path = "/sandboxes/{id}/fork", operation_id = "fork_sandbox", tag = "sandboxes",
    params(SandboxName), request_body = Option<Fork>,
    responses((status = 200, description = "The copy, running.", body = SandboxReply))
)]
pub(crate) async fn fork_sandbox(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    links: Links,
    name: SandboxName,
    OptionalBody(request): OptionalBody<Option<Fork>>,
) -> Result<Json<SandboxReply>, ApiError> {
    copies::fork_sandbox(&app, &caller, &links, &name.id, request.unwrap_or_default())
        .await
        .map(Json)
}
