//! `POST /sandboxes/create`.

use crate::actions::create::{self, CreateSandbox};
use crate::extract::IdempotencyKey;
use crate::model::sandbox::SandboxReply;
use crate::prelude::*;

/// Create a sandbox
///
/// Creates a sandbox and waits until it is running. Every field is optional: an empty object creates a sandbox from the
/// default template with the default limits.
///
/// A sandbox is paused after `timeout` seconds without activity and wakes at the next request, unless `timeout_action`
/// or `auto_resume` say otherwise. Send an `Idempotency-Key` header to make a retry return the same sandbox instead of
/// creating another one.
#[utoipa::path(
    post, path = "/sandboxes/create", tag = "sandboxes", params(IdempotencyKey), request_body = CreateSandbox,
    responses((status = 200, description = "Sandbox created and running.", body = SandboxReply))
)]
pub(crate) async fn create_sandbox(
    call: Call,
    key: IdempotencyKey,
    Body(request): Body<CreateSandbox>,
) -> Reply<SandboxReply> {
    create::create_sandbox(&call, key, request).await.map(Json)
}
