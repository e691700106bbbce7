//! `GET /sandboxes/{id}/diff`.

use axum::Json;
use axum::extract::State;
use sandyard_provider::ChangeKind;
use serde::Serialize;
use utoipa::ToSchema;

use crate::access::Authenticated;
use crate::app::App;
use crate::error::ApiError;
use crate::extract::SandboxName;

/// Most changed files that are listed.
const MAX_CHANGES: usize = 10_000;

/// One file that differs from the template's.
#[derive(Serialize, ToSchema)]
pub(crate) struct ChangeView {
    /// Where, as seen inside.
    path: String,
    /// How: `added`, `modified` or `deleted`.
    kind: &'static str,
}

/// What changed since the template.
#[derive(Serialize, ToSchema)]
pub(crate) struct DiffReply {
    changes: Vec<ChangeView>,
    /// Whether there are more than are listed.
    truncated: bool,
}

/// Lists what changed in a sandbox since its template.
#[utoipa::path(
    get, path = "/sandboxes/{id}/diff", operation_id = "diff_sandbox", tag = "templates",
    params(SandboxName),
    responses((status = 200, description = "What changed.", body = DiffReply))
)]
pub(crate) async fn diff_sandbox(
    State(app): State<App>,
    Authenticated(caller): Authenticated,
    name: SandboxName,
) -> Result<Json<DiffReply>, ApiError> {
    let changes = app.service().diff(&caller, &name.id).await?;
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
