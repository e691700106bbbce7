//! Pauses a sandbox: freezes it and keeps its memory.

use sandyard_core::{Caller, SandboxState, SandboxStatus};
use sandyard_provider::ProviderErrorKind;
use sandyard_store::model::{Operation, Sandbox, SandboxPatch};
use serde_json::json;

use super::snapshot::unsupported;
use super::wake::is_row_wrong;
use crate::claim::Claim;
use crate::error::{Result, ServiceError};
use crate::service::Service;

/// Most characters stored of a reason.
const MAX_REASON: usize = 500;

impl Service {
    /// Pauses a sandbox. Pausing a paused or stopped one succeeds.
    pub async fn pause(
        &self,
        caller: &Caller,
        name: &str,
        reason: Option<String>,
    ) -> Result<Sandbox> {
        let sandbox = self.existing(caller, name).await?;
        let (service, caller) = (self.clone(), caller.clone());
        self.detached(async move {
            let claim = service.claim(&sandbox.id, Operation::Pause).await?;
            let reason = reason
                .filter(|reason| !reason.is_empty())
                .map(|reason| reason.chars().take(MAX_REASON).collect());
            service.pause_claimed(&caller, claim, reason).await
        })
        .await
    }

    /// Pauses a claimed sandbox. If its provider cannot pause it, it is stopped and keeps its files, if the provider can do that.
    pub(crate) async fn pause_claimed(
        &self,
        caller: &Caller,
        claim: Claim,
        reason: Option<String>,
    ) -> Result<Sandbox> {
        claim.check_exists()?;
        match claim.row.status {
            SandboxStatus::Paused | SandboxStatus::Stopped => return claim.release().await,
            SandboxStatus::Running => {}
            status => {
                return Err(ServiceError::conflict(format!(
                    "sandbox `{}` is {status} and cannot be paused",
                    claim.row.id
                )));
            }
        }
        let provider = self.registry().provider_of(&claim.row).await?;
        let id = claim.row.provider_id.clone().unwrap_or_default();
        claim.check_held()?;
        let capabilities = provider.info().capabilities;
        let result = if capabilities.can_pause {
            match provider.pause(&id).await {
                // The provider can pause other instances, but not this one. It must not run on.
                Err(error)
                    if error.kind == ProviderErrorKind::Unsupported && capabilities.can_stop =>
                {
                    claim.check_held()?;
                    provider.stop(&id).await
                }
                paused => paused,
            }
        } else if capabilities.can_stop {
            provider.stop(&id).await
        } else {
            return Err(unsupported("pause", &claim.row.provider));
        };
        let instance = match result {
            Ok(instance) => instance,
            Err(error) if is_row_wrong(&error) => {
                return self
                    .sync_row_from_provider(caller, claim, Some(error))
                    .await;
            }
            Err(error) => return Err(error.into()),
        };
        let status = match instance.state {
            SandboxState::Stopped => SandboxStatus::Stopped,
            _ => SandboxStatus::Paused,
        };
        let patch = SandboxPatch {
            status: Some(status),
            reason: Some(reason.clone()),
            stopped_ms: Some(Some(self.clock().now_ms())),
            ..SandboxPatch::default()
        };
        let event = claim.event(status.as_str(), caller, json!({"reason": reason}));
        let timer = claim.timer_after(&patch);
        claim.commit(patch, vec![event], timer).await
    }
}
