//! `PATCH /sandboxes/{id}`.

use std::collections::BTreeMap;

use axum::Json;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::bounds::{self, MetadataValue};
use crate::call::Call;
use crate::error::Reply;
use crate::extract::{Body, SandboxName};
use crate::model::sandbox::SandboxReply;

/// Changes of a sandbox.
#[derive(Deserialize, ToSchema)]
pub(crate) struct UpdateSandbox {
    /// Labels to change.
    #[schema(schema_with = bounds::metadata_changes_schema)]
    metadata: BTreeMap<String, Option<MetadataValue>>,
}

/// Update a sandbox
///
/// Changes the labels of a sandbox. Does not wake the sandbox and does not count as activity.
#[utoipa::path(
    patch, path = "/sandboxes/{id}", tag = "sandboxes", params(SandboxName), request_body = UpdateSandbox,
    responses((status = 200, description = "Sandbox updated.", body = SandboxReply))
)]
pub(crate) async fn update_sandbox(
    call: Call,
    name: SandboxName,
    Body(request): Body<UpdateSandbox>,
) -> Reply<SandboxReply> {
    let changes = bounds::metadata_changes("metadata", request.metadata)?;
    let service = call.service();
    let sandbox = service
        .change_metadata(&call.caller, &name.id, changes)
        .await?;
    Ok(Json(SandboxReply::new(&sandbox, &call, "Sandbox updated")))
}
