//! Wakes a sandbox, once for all concurrent calls.

use sandyard_core::{Caller, SandboxId, SandboxState, SandboxStatus};
use sandyard_provider::{Instance, Provider, ProviderError, ProviderErrorKind};
use sandyard_store::model::{Expiry, Operation, Sandbox, SandboxPatch};
use serde_json::json;

use super::may_wake::{MayWake, is_ready};
use crate::claim::{CLAIM_WAIT, Claim};
use crate::error::{Result, ServiceError};
use crate::request::{ConnectRequest, Connected, TimeoutRequest};
use crate::service::Service;

impl Service {
    /// Wakes a sandbox if it does not run, and restarts its timeout.
    pub async fn connect(&self, caller: &Caller, name: &str) -> Result<Sandbox> {
        let sandbox = self.existing(caller, name).await?;
        let _activity = self.activity().begin(&sandbox.id);
        self.wake(caller, &sandbox.id, MayWake::All).await
    }

    /// Wakes a sandbox if it does not run, and gives it at least the requested time. A running sandbox never loses time; a woken one gets
    /// exactly the requested time.
    pub async fn connect_for(
        &self,
        caller: &Caller,
        name: &str,
        request: ConnectRequest,
    ) -> Result<Connected> {
        if let Some(timeout) = request.timeout {
            // Checked before the sandbox is woken.
            self.timeout_s(Some(timeout))?;
        }
        let sandbox = self.existing(caller, name).await?;
        let _activity = self.activity().begin(&sandbox.id);
        let was_woken = sandbox.status != SandboxStatus::Running;
        let id = sandbox.id.as_str();
        if request.is_cold && sandbox.status == SandboxStatus::Paused {
            self.stop(caller, id).await?;
        }
        let woken = self.wake(caller, &sandbox.id, MayWake::All).await?;
        let sandbox = match request.timeout {
            None => woken,
            Some(timeout) if was_woken => {
                let request = TimeoutRequest {
                    timeout,
                    action: None,
                    expiry: None,
                };
                self.set_timeout(caller, id, request).await?
            }
            Some(timeout) => self.extend(caller, id, timeout).await?,
        };
        Ok(Connected { sandbox, was_woken })
    }

    /// Resumes or starts a sandbox. Does nothing to a running one.
    pub async fn resume(&self, caller: &Caller, name: &str) -> Result<Sandbox> {
        self.connect(caller, name).await
    }

    /// Wakes a sandbox, or refuses to. Concurrent calls wait for the same claim: the first one wakes it, the others find it running.
    pub(crate) async fn wake(
        &self,
        caller: &Caller,
        id: &SandboxId,
        may_wake: MayWake,
    ) -> Result<Sandbox> {
        let (service, caller, id) = (self.clone(), caller.clone(), id.clone());
        self.detached(async move {
            let local_lock = tokio::time::timeout(CLAIM_WAIT, service.locks().lock(&id)).await;
            let row = service.store().sandbox(&id).await?;
            drop(local_lock);
            if let Some(row) = row {
                if is_ready(&row) {
                    return Ok(row);
                }
                may_wake.check(&row)?;
            }
            let claim = service.claim(&id, Operation::Wake).await?;
            if let Err(refusal) = may_wake.check(&claim.row) {
                claim.release().await?;
                return Err(refusal);
            }
            service.wake_claimed(&caller, claim).await
        })
        .await
    }

    async fn wake_claimed(&self, caller: &Caller, claim: Claim) -> Result<Sandbox> {
        claim.check_exists()?;
        match claim.row.status {
            SandboxStatus::Running => return claim.release().await,
            status if status.can_wake() => {}
            status => {
                let why = claim.row.reason.clone().unwrap_or_default();
                return Err(ServiceError::conflict(format!(
                    "sandbox `{}` is in state {status}: {why}",
                    claim.row.id
                ))
                .hint("it can only be deleted"));
            }
        }
        let started_at = std::time::Instant::now();
        let provider = self.registry().provider_of(&claim.row).await?;
        claim.check_held()?;
        let instance = match bring_up(provider.as_ref(), &claim.row).await {
            Ok(instance) => instance,
            Err(error) if error.kind == ProviderErrorKind::NotFound => {
                return self
                    .sync_row_from_provider(caller, claim, Some(error))
                    .await;
            }
            Err(error) => return Err(error.into()),
        };
        let now_ms = self.clock().now_ms();
        let was = claim.row.status;
        let is_restart = instance.started_ms != claim.row.started_ms;
        let patch = SandboxPatch {
            status: Some(SandboxStatus::Running),
            reason: Some(None),
            started_ms: instance.started_ms,
            stopped_ms: Some(None),
            last_activity_ms: Some(now_ms),
            fixed_end_ms: (claim.row.expiry == Expiry::Fixed)
                .then(|| Some(now_ms + claim.row.timeout_s * 1000)),
            ..SandboxPatch::default()
        };
        let event = claim.event(
            "woken",
            caller,
            json!({"was": was, "memory_kept": !is_restart}),
        );
        // An instance that kept its memory reports a repair of an earlier start.
        let repair = claim.repair_event(caller, instance.reason.filter(|_| is_restart));
        let events = std::iter::once(event).chain(repair).collect();
        let timer = claim.timer_after(&patch);
        if is_restart {
            // Its connections led to processes that have ended.
            self.agents().remove(&claim.row.id);
        }
        let sandbox = claim.commit(patch, events, timer).await?;
        if is_restart || was != SandboxStatus::Paused {
            self.push_grant_soon(&sandbox.id);
        }
        self.adopt_commands_soon(&sandbox);
        metrics::histogram!("sandyard_wake_seconds").record(started_at.elapsed().as_secs_f64());
        Ok(sandbox)
    }

    /// Sets a row to the state that the provider reports.
    pub(crate) async fn sync_row_from_provider(
        &self,
        caller: &Caller,
        claim: Claim,
        error: Option<ProviderError>,
    ) -> Result<Sandbox> {
        let provider = self.registry().provider_of(&claim.row).await?;
        let id = claim.row.provider_id.clone().unwrap_or_default();
        let now_ms = self.clock().now_ms();
        let instance = provider.inspect(&id).await?;
        let (status, reason) = match &instance {
            None => (
                SandboxStatus::Error,
                Some("its instance is gone from the provider".to_owned()),
            ),
            Some(instance) => match instance.state {
                SandboxState::Running => (SandboxStatus::Running, None),
                SandboxState::Paused => (SandboxStatus::Paused, instance.reason.clone()),
                SandboxState::Stopped => (SandboxStatus::Stopped, instance.reason.clone()),
                SandboxState::Creating | SandboxState::Deleting => {
                    return Err(error.map_or_else(
                        || {
                            ServiceError::busy(format!(
                                "the provider is still changing sandbox `{}`",
                                claim.row.id
                            ))
                        },
                        ServiceError::from,
                    ));
                }
            },
        };
        if status == claim.row.status {
            return match error {
                Some(error) => Err(error.into()),
                None => claim.release().await,
            };
        }
        let is_live = status == SandboxStatus::Running;
        let patch = SandboxPatch {
            status: Some(status),
            reason: Some(reason.clone()),
            stopped_ms: Some((!is_live).then_some(now_ms)),
            ..SandboxPatch::default()
        };
        let kind = match status {
            SandboxStatus::Error => "error",
            SandboxStatus::Stopped => "vanished",
            _ => "found",
        };
        let event = claim.event(
            kind,
            caller,
            json!({"was": claim.row.status, "is": status, "reason": reason}),
        );
        let timer = claim.timer_after(&patch);
        self.agents().remove(&claim.row.id);
        let sandbox = claim.commit(patch, vec![event], timer).await?;
        match sandbox.status {
            SandboxStatus::Error => Err(ServiceError::conflict(format!(
                "sandbox `{}` is unusable: {}",
                sandbox.id,
                reason.unwrap_or_default()
            ))
            .hint("delete it and create another one")),
            _ => Ok(sandbox),
        }
    }
}

/// Says whether a provider's error means that the row does not match its instance.
pub(super) fn is_row_wrong(error: &ProviderError) -> bool {
    matches!(
        error.kind,
        ProviderErrorKind::Conflict | ProviderErrorKind::NotFound
    )
}

/// Resumes or starts an instance, depending on its state.
async fn bring_up(provider: &dyn Provider, row: &Sandbox) -> Result<Instance, ProviderError> {
    let id = row.provider_id.as_deref().unwrap_or_default();
    let first = match row.status {
        SandboxStatus::Paused => provider.resume(id).await,
        _ => provider.start(id).await,
    };
    match first {
        Err(error) if error.kind == ProviderErrorKind::Conflict => {
            // The row does not match: the processes ended while it was paused, or the instance runs already.
            match provider
                .inspect(id)
                .await?
                .map(|instance| (instance.state, instance))
            {
                Some((SandboxState::Running, instance)) => Ok(instance),
                Some((SandboxState::Stopped, _)) => provider.start(id).await,
                Some((SandboxState::Paused, _)) => provider.resume(id).await,
                _ => Err(error),
            }
        }
        result => result,
    }
}
