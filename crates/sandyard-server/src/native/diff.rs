//! `GET /sandboxes/{id}/diff`.

use sandyard_provider::Change;

use crate::prelude::*;

/// Maximum number of changed files in a response.
const MAX_CHANGES: usize = 10_000;

/// Differences between a sandbox and its template.
#[derive(Serialize, ToSchema)]
pub(crate) struct DiffReply {
    /// Changed files, sorted by path.
    changes: Vec<Change>,
    /// Whether there are more changes than the response lists.
    truncated: bool,
}

/// List changed files
///
/// Lists the files that a sandbox added, changed or deleted compared with its template, at most 10,000.
#[utoipa::path(
    get, path = "/sandboxes/{id}/diff", tag = "templates", params(SandboxName),
    responses((status = 200, description = "Changed files returned.", body = DiffReply))
)]
pub(crate) async fn diff_sandbox(call: Call, name: SandboxName) -> Reply<DiffReply> {
    let mut changes = call.service().diff(&call.caller, &name.id).await?;
    let truncated = changes.len() > MAX_CHANGES;
    changes.truncate(MAX_CHANGES);
    Ok(Json(DiffReply { changes, truncated }))
}
