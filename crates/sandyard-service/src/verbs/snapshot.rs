//! Keeps a sandbox's files as a template.

use sandyard_core::{Caller, ErrorKind};
use sandyard_provider::{Retry, TemplateInfo};
use sandyard_store::model::{Operation, Sandbox, SandboxPatch, TimerPlan};
use serde_json::json;

use crate::error::{ServiceError, ServiceResult};
use crate::service::Service;

/// Snapshots one user may have: each may be as large as a sandbox.
const MAX_SNAPSHOTS: usize = 100;

impl Service {
    /// Keeps a sandbox's files as a template of its owner's.
    pub async fn snapshot(
        &self,
        caller: &Caller,
        name: &str,
        template: &str,
    ) -> ServiceResult<TemplateInfo> {
        let sandbox = self.existing(caller, name).await?;
        let (service, caller, template) = (self.clone(), caller.clone(), template.to_owned());
        self.detached(async move {
            let claim = service.claim(&sandbox.id, Operation::Copy).await?;
            claim.check_exists()?;
            let provider = service.places().provider(&claim.row.location).await?;
            if !provider.info().capabilities.can_snapshot {
                return Err(unsupported("snapshot", &claim.row.provider));
            }
            service.reserve_snapshot(&caller, &claim.row, &template).await?;
            let id = claim.row.provider_id.clone().unwrap_or_default();
            let info = match provider.snapshot(&id, &template).await {
                Ok(info) => info,
                Err(error) => {
                    // Where it may have been made after all, it stays its owner's.
                    if error.retry == Retry::Never {
                        let location = &claim.row.location;
                        service.store().delete_snapshot(location, &template).await?;
                    }
                    return Err(error.into());
                }
            };
            let event = claim.event("snapshot", &caller, json!({"template": info.name}));
            let noted = claim
                .commit(SandboxPatch::default(), vec![event], TimerPlan::Keep)
                .await;
            if let Err(error) = noted {
                // The template is there; only the history lacks it.
                tracing::warn!(%error, template = info.name, "A snapshot is not in its sandbox's history");
            }
            Ok(info)
        })
        .await
    }
}

impl Service {
    /// Makes a name its owner's before there is anything under it, so that nobody else ever sees it.
    async fn reserve_snapshot(
        &self,
        caller: &Caller,
        sandbox: &Sandbox,
        name: &str,
    ) -> ServiceResult<()> {
        let (location, owner) = (&sandbox.location, &sandbox.owner);
        let all = self.store().snapshots(location).await?;
        let count = all.iter().filter(|(_, whose)| whose == owner).count();
        if count >= MAX_SNAPSHOTS && !caller.is_admin() {
            return Err(ServiceError::new(
                ErrorKind::QuotaExceeded,
                format!("`{owner}` has {count} snapshots, as many as allowed"),
            )
            .hint("remove one: DELETE /templates/{name}"));
        }
        let now_ms = self.clock().now_ms();
        if self
            .store()
            .insert_snapshot(location, name, owner, now_ms)
            .await?
        {
            return Ok(());
        }
        Err(ServiceError::new(
            ErrorKind::Conflict,
            format!("a template `{name}` exists already"),
        )
        .hint("choose another name, or remove that one"))
    }
}

/// The typed answer to what a provider cannot do.
pub(super) fn unsupported(operation: &str, provider: &str) -> ServiceError {
    ServiceError::new(
        ErrorKind::Unsupported,
        format!("provider `{provider}` cannot {operation} a sandbox"),
    )
    .hint("GET /health lists what each provider can do")
}
