//! Keeps a sandbox's files as a template.

use sandyard_core::{Caller, ErrorKind};
use sandyard_provider::TemplateInfo;
use sandyard_store::model::{Operation, SandboxPatch, TimerPlan};
use serde_json::json;

use crate::error::{ServiceError, ServiceResult};
use crate::service::Service;

impl Service {
    /// Keeps a sandbox's files as a template.
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
            let id = claim.row.provider_id.clone().unwrap_or_default();
            let info = provider.snapshot(&id, &template).await?;
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

/// The typed answer to what a provider cannot do.
pub(super) fn unsupported(operation: &str, provider: &str) -> ServiceError {
    ServiceError::new(
        ErrorKind::Unsupported,
        format!("provider `{provider}` cannot {operation} a sandbox"),
    )
    .hint("GET /health lists what each provider can do")
}
