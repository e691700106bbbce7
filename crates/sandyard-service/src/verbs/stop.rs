//! Stops a sandbox: ends its processes and keeps its files.

use sandyard_core::{Caller, SandboxStatus};
use sandyard_store::model::{Operation, Sandbox, SandboxPatch};
use serde_json::json;

use super::snapshot::unsupported;
use super::wake::is_row_wrong;
use crate::claim::Claim;
use crate::error::{Result, ServiceError};
use crate::service::Service;

impl Service {
    /// Stops a sandbox. Stopping a stopped one succeeds.
    pub async fn stop(&self, caller: &Caller, name: &str) -> Result<Sandbox> {
        let sandbox = self.existing(caller, name).await?;
        let (service, caller) = (self.clone(), caller.clone());
        self.detached(async move {
            let claim = service.claim(&sandbox.id, Operation::Stop).await?;
            service.stop_claimed(&caller, claim, None).await
        })
        .await
    }

    /// Stops a claimed sandbox.
    pub(crate) async fn stop_claimed(
        &self,
        caller: &Caller,
        claim: Claim,
        reason: Option<String>,
    ) -> Result<Sandbox> {
        claim.check_exists()?;
        match claim.row.status {
            SandboxStatus::Stopped => return claim.release().await,
            SandboxStatus::Running | SandboxStatus::Paused => {}
            status => {
                return Err(ServiceError::conflict(format!(
                    "sandbox `{}` is {status} and cannot be stopped",
                    claim.row.id
                )));
            }
        }
        let provider = self.registry().provider_of(&claim.row).await?;
        if !provider.info().capabilities.can_stop {
            return Err(unsupported("stop", &claim.row.provider));
        }
        let id = claim.row.provider_id.clone().unwrap_or_default();
        claim.check_held()?;
        match provider.stop(&id).await {
            Ok(_) => {}
            Err(error) if is_row_wrong(&error) => {
                return self
                    .sync_row_from_provider(caller, claim, Some(error))
                    .await;
            }
            Err(error) => return Err(error.into()),
        }
        let patch = SandboxPatch {
            status: Some(SandboxStatus::Stopped),
            reason: Some(reason.clone()),
            stopped_ms: Some(Some(self.clock().now_ms())),
            ..SandboxPatch::default()
        };
        let event = claim.event("stopped", caller, json!({"reason": reason}));
        let timer = claim.timer_after(&patch);
        let sandbox = claim.commit(patch, vec![event], timer).await?;
        self.agents().remove(&sandbox.id);
        Ok(sandbox)
    }
}
