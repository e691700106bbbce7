//! `POST /sandboxes/{id}/snapshot` and `POST /sandboxes/{id}/fork`.

use crate::actions::copies::{self, Fork, Snapshot};
use crate::model::sandbox::SandboxReply;
use crate::model::template::TemplateView;
use crate::prelude::*;

/// Create a snapshot
///
/// Saves the files of a sandbox as a template under a new name. Processes and memory are not saved. Create sandboxes
/// from it by passing the name as `template_id`.
#[utoipa::path(
    post, path = "/sandboxes/{id}/snapshot", tag = "templates", params(SandboxName), request_body = Snapshot,
    responses((status = 200, description = "Snapshot created.", body = TemplateView))
)]
pub(crate) async fn snapshot_sandbox(
    call: Call,
    name: SandboxName,
    Body(request): Body<Snapshot>,
) -> Reply<TemplateView> {
    copies::snapshot_sandbox(&call, &name.id, request)
        .await
        .map(Json)
}

/// Fork a sandbox
///
/// Creates another sandbox from the current files of this one. Processes and memory are not copied. The request body is
/// optional; settings that it leaves out are copied from the original.
#[utoipa::path(
    post, path = "/sandboxes/{id}/fork", tag = "sandboxes", params(SandboxName), request_body = Option<Fork>,
    responses((status = 200, description = "Fork created and running.", body = SandboxReply))
)]
pub(crate) async fn fork_sandbox(
    call: Call,
    name: SandboxName,
    OptionalBody(request): OptionalBody<Fork>,
) -> Reply<SandboxReply> {
    copies::fork_sandbox(&call, &name.id, request)
        .await
        .map(Json)
}
