//! Removes a sandbox: the intention first, then the resource, the row last.

use std::sync::Arc;

use sandyard_core::{Caller, SandboxId, SandboxStatus};
use sandyard_provider::Provider;
use sandyard_store::model::{Operation, Sandbox, SandboxPatch, TimerPlan};
use serde_json::json;

use crate::claim::Claim;
use crate::error::ServiceResult;
use crate::policy;
use crate::service::Service;

/// When to try again if this server dies in between.
const AGAIN_AFTER_MS: i64 = 15_000;

impl Service {
    /// Removes a sandbox; one that is removed already counts as done.
    pub async fn delete(&self, caller: &Caller, name: &str) -> ServiceResult<Sandbox> {
        let sandbox = self.inspect(caller, name).await?;
        if sandbox.status == SandboxStatus::Deleted {
            return Ok(sandbox);
        }
        let (service, caller) = (self.clone(), caller.clone());
        self.detached(async move { service.delete_by_id(&caller, &sandbox.id, "asked").await })
            .await
    }

    /// Removes a sandbox for a reason.
    pub(crate) async fn delete_by_id(
        &self,
        caller: &Caller,
        id: &SandboxId,
        why: &str,
    ) -> ServiceResult<Sandbox> {
        let claim = self.claim(id, Operation::Delete).await?;
        self.delete_claimed(caller, claim, why).await
    }

    /// Removes a claimed sandbox.
    pub(crate) async fn delete_claimed(
        &self,
        caller: &Caller,
        mut claim: Claim,
        why: &str,
    ) -> ServiceResult<Sandbox> {
        let id = claim.row.id.clone();
        if claim.row.status == SandboxStatus::Deleted {
            return claim.release().await;
        }
        // Before anything is said: where nobody can do it, the sandbox stays what it is.
        let provider = self.places().provider_of(&claim.row).await?;
        if claim.row.status != SandboxStatus::Deleting {
            let patch = SandboxPatch {
                status: Some(SandboxStatus::Deleting),
                ..SandboxPatch::default()
            };
            let event = claim.event("deleting", caller, json!({"why": why}));
            let again = TimerPlan::Set {
                due_ms: self.clock().now_ms() + AGAIN_AFTER_MS,
            };
            claim.note(patch, vec![event], again).await?;
        }
        self.remove_instance(&claim, &provider).await?;
        let patch = SandboxPatch {
            status: Some(SandboxStatus::Deleted),
            deleted_ms: Some(self.clock().now_ms()),
            network: policy::bare(claim.row.network.as_ref()),
            forget_secrets: true,
            ..SandboxPatch::default()
        };
        let event = claim.event("deleted", caller, json!({"why": why}));
        let sandbox = claim.commit(patch, vec![event], TimerPlan::Clear).await?;
        self.agents().remove(&id);
        self.command_logs().forget(&id).await;
        self.grants().forget(&id);
        Ok(sandbox)
    }

    /// Removes what the provider has of a sandbox, also what the row does not know of.
    async fn remove_instance(
        &self,
        claim: &Claim,
        provider: &Arc<dyn Provider>,
    ) -> ServiceResult<()> {
        claim.check_held()?;
        if let Some(id) = &claim.row.provider_id {
            return Ok(provider.delete(id).await?);
        }
        for instance in provider.list().await? {
            if instance.sandbox_id.as_ref() == Some(&claim.row.id) {
                provider.delete(&instance.id).await?;
            }
        }
        Ok(())
    }
}
