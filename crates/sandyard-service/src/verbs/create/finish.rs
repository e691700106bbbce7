//! Writes down how a provider's work on a new sandbox ended.

use std::sync::Arc;

use sandyard_core::{Caller, ErrorKind, SandboxStatus};
use sandyard_provider::{Instance, Provider, ProviderError, ProviderErrorKind};
use sandyard_store::model::{Expiry, Sandbox, SandboxPatch, TimerPlan};
use serde_json::json;

use crate::claim::Claim;
use crate::error::{ServiceError, ServiceResult};
use crate::policy;
use crate::service::Service;

impl Service {
    /// Writes down how the provider's work ended, and undoes it if that fails.
    pub(crate) async fn finish_create(
        &self,
        caller: &Caller,
        claim: Claim,
        provider: &Arc<dyn Provider>,
        made: Result<Instance, ProviderError>,
    ) -> ServiceResult<Sandbox> {
        let instance = match made {
            Ok(instance) => instance,
            Err(error) => {
                let is_sure = is_sure(&error);
                let error = describe(error.into());
                self.give_up(caller, claim, &error, is_sure).await;
                return Err(error);
            }
        };
        let now_ms = self.clock().now_ms();
        let id = instance.id.clone();
        let patch = SandboxPatch {
            status: Some(SandboxStatus::Running),
            provider_id: Some(instance.id),
            limits: Some(instance.limits),
            lacks: Some(instance.lacks),
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
        // The commit may have happened although its answer got lost, or another server may have finished the create.
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
            // Still `creating`, or nobody knows: its timer and the reconciler end it one way or the other.
            _ => {}
        }
        Err(error)
    }

    /// Ends a create that failed.
    pub(super) async fn give_up(
        &self,
        caller: &Caller,
        claim: Claim,
        error: &ServiceError,
        is_sure: bool,
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
            if !is_sure {
                // The provider may have made it after all: the timer's turn is to look and delete.
                claim.commit(deleting, vec![event], soon).await?;
                return Ok(());
            }
            claim.note(deleting, vec![event], TimerPlan::Keep).await?;
            let gone = SandboxPatch {
                status: Some(SandboxStatus::Deleted),
                deleted_ms: Some(now_ms),
                network: policy::bare(claim.row.network.as_ref()),
                forget_secrets: true,
                ..SandboxPatch::default()
            };
            claim.commit(gone, Vec::new(), TimerPlan::Clear).await?;
            ServiceResult::Ok(())
        }
        .await;
        if let Err(error) = result {
            tracing::warn!(%error, "A failed create could not be written down; the reconciler will");
        }
    }
}

/// Says whether a failed create has left nothing, or the provider may have made it after all.
pub(super) fn is_sure(error: &ProviderError) -> bool {
    !matches!(
        error.kind,
        ProviderErrorKind::TimedOut | ProviderErrorKind::Unavailable
    )
}

async fn undo_create(provider: &Arc<dyn Provider>, id: &str) {
    if let Err(error) = provider.delete(id).await {
        // It carries its sandbox's id, so the reconciler finds it.
        tracing::warn!(%error, instance.id = id, "Undoing a create failed");
    }
}

/// A template that does not exist is the caller's mistake, not a missing sandbox.
fn describe(error: ServiceError) -> ServiceError {
    match error.kind {
        ErrorKind::NotFound => error.field("template"),
        _ => error,
    }
}
