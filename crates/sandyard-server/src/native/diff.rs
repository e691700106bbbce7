//! `GET /sandboxes/{id}/diff`.

use crate::prelude::*;
use sandyard_provider::ChangeKind;

/// Maximum number of changed files in a response.
const MAX_CHANGES: usize = 10_000;

/// File that differs from the template's.
#[derive(Serialize, ToSchema)]
pub(crate) struct ChangeView {
    /// Path of the file inside the sandbox.
    path: String,
    /// Kind of change: `added`, `modified` or `deleted`.
    kind: &'static str,
}

/// Differences between a sandbox and its template.
#[derive(Serialize, ToSchema)]
pub(crate) struct DiffReply {
    /// Changed files, sorted by path.
    changes: Vec<ChangeView>,
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
    let changes = call.service().diff(&call.caller, &name.id).await?;
    Ok(Json(DiffReply {
        truncated: changes.len() > MAX_CHANGES,
        changes: changes
            .into_iter()
            .take(MAX_CHANGES)
            .map(|change| ChangeView {
                path: change.path,
                kind: match change.kind {
                    ChangeKind::Added => "added",
                    ChangeKind::Modified => "modified",
                    ChangeKind::Deleted => "deleted",
                },
            })
            .collect(),
    }))
}
