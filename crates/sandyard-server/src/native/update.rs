//! `PATCH /sandboxes/{id}`.

use std::collections::BTreeMap;

use sandyard_service::SandboxChange;

use crate::actions::create::check_alias;
use crate::bounds::MetadataValue;
use crate::model::sandbox::SandboxReply;
use crate::prelude::*;

/// Changes of a sandbox. What is not named stays.
#[derive(Deserialize, ToSchema)]
pub(crate) struct UpdateSandbox {
    /// New alias of the sandbox (also accepted as `name`), unique among the owner's sandboxes. Null removes the alias.
    #[serde(default, alias = "name", deserialize_with = "nullable")]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 63, pattern = "^[a-z0-9][a-z0-9-]*$")]
    alias: Option<Option<String>>,
    /// Labels to change.
    #[serde(default)]
    #[schema(required = false, schema_with = bounds::metadata_changes_schema)]
    metadata: BTreeMap<String, Option<MetadataValue>>,
}

/// Reads a field of which null is a value: a field that is missing is none.
fn nullable<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(from).map(Some)
}

/// Update a sandbox
///
/// Changes the alias and the labels of a sandbox. Does not wake the sandbox and does not count as activity.
#[utoipa::path(
    patch, path = "/sandboxes/{id}", tag = "sandboxes", params(SandboxName), request_body = UpdateSandbox,
    responses((status = 200, description = "Sandbox updated.", body = SandboxReply))
)]
pub(crate) async fn update_sandbox(
    call: Call,
    name: SandboxName,
    Body(request): Body<UpdateSandbox>,
) -> Reply<SandboxReply> {
    check_alias(request.alias.as_ref().and_then(|alias| alias.as_deref()))?;
    let change = SandboxChange {
        alias: request.alias,
        metadata: bounds::metadata_changes("metadata", request.metadata)?,
    };
    let service = call.service();
    let sandbox = service.change(&call.caller, &name.id, change).await?;
    Ok(Json(SandboxReply::new(&sandbox, &call, "Sandbox updated")))
}
