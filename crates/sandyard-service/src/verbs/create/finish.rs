//! Records the result of a provider's create.

use std::sync::Arc;

use sandyard_core::{Caller, ErrorKind, SandboxStatus};
use sandyard_provider::{Instance, Provider, ProviderError, ProviderErrorKind};
use sandyard_store::model::{Expiry, Sandbox, SandboxPatch, TimerPlan};
use serde_json::json;

use crate::claim::Claim;
use crate::error::{Result, ServiceError};
use crate::policy;
use crate::service::Service;

impl Service {
    /// Records the result of a provider's create, and undoes the create if that fails.
    pub(crate) async fn finish_create(
        &self,
        caller: &Caller,
        claim: Claim,
        provider: &Arc<dyn Provider>,
        created: Result<Instance, ProviderError>,
    ) -> Result<Sandbox> {
        let instance = match created {
            Ok(instance) => instance,
            Err(error) => {
                let is_certain = is_certain(&error);
                let error = describe(error.into());
                self.fail_create(caller, claim, &error, is_certain).await;
                return Err(error);
            }
        };
        let now_ms = self.clock().now_ms();
        let id = instance.id.clone();
        let patch = SandboxPatch {
            status: Some(SandboxStatus::Running),
            provider_id: Some(instance.id),
            limits: Some(instance.limits),
            limitations: Some(instance.limitations),
            started_ms: Some(instance.started_ms.unwrap_or(now_ms)),
            last_activity_ms: Some(now_ms),
            fixed_end_ms: (claim.row.expiry == Expiry::Fixed)
                .then(|| Some(now_ms + claim.row.timeout_s * 1000)),
            ..SandboxPatch::default()
        };
        let timer = claim.timer_after(&patch);
        let event = claim.event("running", caller, json!({"provider_id": id}));
        let repair = claim.repair_event(caller, instance.reason);
        let events = std::iter::once(event).chain(repair).collect();
        let sandbox_id = claim.row.id.clone();
        let error = match claim.commit(patch, events, timer).await {
            Ok(sandbox) => {
                self.push_grant_soon(&sandbox.id);
                return Ok(sandbox);
            }
            Err(error) => error,
        };
        // The commit may have succeeded although its answer got lost, or another server may have finished the create.
        match self.store().sandbox(&sandbox_id).await {
            Ok(Some(row))
                if row.status == SandboxStatus::Running
                    && row.provider_id.as_deref() == Some(id.as_str()) =>
            {
                self.push_grant_soon(&row.id);
                return Ok(row);
            }
            Ok(None) => undo_create(provider, &id).await,
            Ok(Some(row))
                if matches!(row.status, SandboxStatus::Deleting | SandboxStatus::Deleted) =>
            {
                undo_create(provider, &id).await;
            }
            // Still `creating`, or unknown: its timer or the reconciler finishes it.
            _ => {}
        }
        Err(error)
    }

    /// Records that a create failed.
    pub(super) async fn fail_create(
        &self,
        caller: &Caller,
        claim: Claim,
        error: &ServiceError,
        is_certain: bool,
    ) {
        let now_ms = self.clock().now_ms();
        let event = claim.event(
            "create_failed",
            caller,
            json!({"code": error.kind.code(), "detail": error.message}),
        );
        let mut claim = claim;
        let deleting = SandboxPatch {
            status: Some(SandboxStatus::Deleting),
            reason: Some(Some(error.message.clone())),
            ..SandboxPatch::default()
        };
        let soon = TimerPlan::Set {
            due_ms: now_ms + 1000,
        };
        let result = async {
            if !is_certain {
                // The provider may have made the instance. A timer checks, and deletes it.
                claim.commit(deleting, vec![event], soon).await?;
                return Ok(());
            }
            claim.update(deleting, vec![event], TimerPlan::Keep).await?;
            let deleted = SandboxPatch {
                status: Some(SandboxStatus::Deleted),
                deleted_ms: Some(now_ms),
                network: policy::without_rules(claim.row.network.as_ref()),
                forget_secrets: true,
                ..SandboxPatch::default()
            };
            claim.commit(deleted, Vec::new(), TimerPlan::Clear).await?;
            Ok::<_, ServiceError>(())
        }
        .await;
        if let Err(error) = result {
            tracing::warn!(%error, "Failed to record a failed create; the reconciler finishes it");
        }
    }
}

/// Says whether a failed create has left no instance for certain.
pub(super) fn is_certain(error: &ProviderError) -> bool {
    !matches!(
        error.kind,
        ProviderErrorKind::TimedOut | ProviderErrorKind::Unavailable
    )
}

async fn undo_create(provider: &Arc<dyn Provider>, id: &str) {
    if let Err(error) = provider.delete(id).await {
        // It has its sandbox's id, so the reconciler finds it.
        tracing::warn!(%error, instance.id = id, "Failed to undo a create");
    }
}

/// A missing template is blamed on the request's `template`.
fn describe(error: ServiceError) -> ServiceError {
    match error.kind {
        ErrorKind::NotFound => error.field("template"),
        _ => error,
    }
}
