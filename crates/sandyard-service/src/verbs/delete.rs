//! Deletes a sandbox: first the intention, then the instance, last the row.

use std::sync::Arc;

use sandyard_core::{Caller, SandboxId, SandboxStatus};
use sandyard_provider::{Instance, Provider};
use sandyard_store::model::{Operation, Sandbox, SandboxPatch, TimerPlan};
use serde_json::json;

use crate::claim::Claim;
use crate::error::Result;
use crate::policy;
use crate::service::Service;

/// When the delete is repeated if this server dies during it, in milliseconds.
const RETRY_AFTER_MS: i64 = 15_000;

impl Service {
    /// Deletes a sandbox. Deleting a deleted one succeeds.
    pub async fn delete(&self, caller: &Caller, name: &str) -> Result<Sandbox> {
        let sandbox = self.inspect(caller, name).await?;
        if sandbox.status == SandboxStatus::Deleted {
            return Ok(sandbox);
        }
        let (service, caller) = (self.clone(), caller.clone());
        self.detached(async move { service.delete_by_id(&caller, &sandbox.id, "asked").await })
            .await
    }

    /// Deletes a sandbox. `reason` goes into its events.
    pub(crate) async fn delete_by_id(
        &self,
        caller: &Caller,
        id: &SandboxId,
        reason: &str,
    ) -> Result<Sandbox> {
        let claim = self.claim(id, Operation::Delete).await?;
        self.delete_claimed(caller, claim, reason).await
    }

    /// Deletes a claimed sandbox.
    pub(crate) async fn delete_claimed(
        &self,
        caller: &Caller,
        claim: Claim,
        reason: &str,
    ) -> Result<Sandbox> {
        self.delete_listed(caller, claim, reason, &[]).await
    }

    /// Deletes a claimed sandbox, given the instances that its provider has listed for it. None listed means that they are listed
    /// again: a list from before the claim does not show that an instance is missing.
    pub(crate) async fn delete_listed(
        &self,
        caller: &Caller,
        mut claim: Claim,
        reason: &str,
        listed_instances: &[&Instance],
    ) -> Result<Sandbox> {
        let id = claim.row.id.clone();
        if claim.row.status == SandboxStatus::Deleted {
            return claim.release().await;
        }
        // Before the row changes: if the provider is unreachable, the sandbox keeps its status.
        let provider = self.registry().provider_of(&claim.row).await?;
        if claim.row.status != SandboxStatus::Deleting {
            let patch = SandboxPatch {
                status: Some(SandboxStatus::Deleting),
                ..SandboxPatch::default()
            };
            let event = claim.event("deleting", caller, json!({"why": reason}));
            let retry = TimerPlan::Set {
                due_ms: self.clock().now_ms() + RETRY_AFTER_MS,
            };
            claim.update(patch, vec![event], retry).await?;
        }
        remove_instance(&claim, &provider, listed_instances).await?;
        let patch = SandboxPatch {
            status: Some(SandboxStatus::Deleted),
            deleted_ms: Some(self.clock().now_ms()),
            network: policy::without_rules(claim.row.network.as_ref()),
            forget_secrets: true,
            ..SandboxPatch::default()
        };
        let event = claim.event("deleted", caller, json!({"why": reason}));
        let sandbox = claim.commit(patch, vec![event], TimerPlan::Clear).await?;
        self.agents().remove(&id);
        self.command_logs().forget(&id).await;
        self.grants().forget(&id);
        Ok(sandbox)
    }
}

/// Removes a sandbox's instance. If the row does not name it, removes every instance with the sandbox's id.
async fn remove_instance(
    claim: &Claim,
    provider: &Arc<dyn Provider>,
    listed_instances: &[&Instance],
) -> Result<()> {
    claim.check_held()?;
    if let Some(id) = &claim.row.provider_id {
        return Ok(provider.delete(id).await?);
    }
    let all = match listed_instances {
        [] => provider.list().await?,
        _ => Vec::new(),
    };
    let instances = listed_instances.iter().copied().chain(&all);
    for instance in instances.filter(|instance| instance.sandbox_id.as_ref() == Some(&claim.row.id))
    {
        provider.delete(&instance.id).await?;
    }
    Ok(())
}
