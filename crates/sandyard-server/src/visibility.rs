//! Which sandboxes a request without a caller can see: previews and E2B's data plane name a sandbox by its id alone.

use sandyard_core::ErrorKind;
use sandyard_service::{Sandbox, ServiceError, ServiceResult};

use crate::app::App;

/// Finds a sandbox by its id, deleted ones too. A sandbox whose owner is disabled is not visible.
pub(crate) async fn find_visible(app: &App, id: &str) -> ServiceResult<Option<Sandbox>> {
    let Some(sandbox) = app.service().find_for_preview(id).await? else {
        return Ok(None);
    };
    let is_hidden = is_owner_disabled(app, &sandbox).await?;
    Ok((!is_hidden).then_some(sandbox))
}

/// Says whether the owner of a sandbox is disabled. If so, neither its token nor a link opens it, and none of its ports is public.
pub(crate) async fn is_owner_disabled(app: &App, sandbox: &Sandbox) -> ServiceResult<bool> {
    let is_disabled = app.auth().is_disabled(&sandbox.owner).await;
    is_disabled.map_err(|error| {
        tracing::warn!(%error, "Cannot look up the owner of a sandbox");
        ServiceError::new(
            ErrorKind::Unavailable,
            "cannot look up the owner of the sandbox: try again in a moment",
        )
    })
}
