//! Changes the timeout of a sandbox.

use std::time::Duration;

use sandyard_core::Caller;
use sandyard_store::model::{Expiry, Operation, Sandbox, SandboxPatch};
use serde_json::json;

use crate::error::Result;
use crate::request::TimeoutRequest;
use crate::service::Service;

impl Service {
    /// Sets the timeout of a sandbox, which starts now. A timeout of zero with [`Expiry::Fixed`] ends it at once.
    pub async fn set_timeout(
        &self,
        caller: &Caller,
        name: &str,
        request: TimeoutRequest,
    ) -> Result<Sandbox> {
        let ends_now = request.timeout.is_zero() && request.expiry == Some(Expiry::Fixed);
        let timeout_s = match ends_now {
            // The old timeout stays, for when it is woken again.
            true => None,
            false => Some(self.timeout_s(Some(request.timeout))?),
        };
        let sandbox = self.existing(caller, name).await?;
        let (service, caller) = (self.clone(), caller.clone());
        self.detached(async move {
            let claim = service.claim(&sandbox.id, Operation::Change).await?;
            claim.check_exists()?;
            let now_ms = service.clock().now_ms();
            let expiry = request.expiry.unwrap_or(claim.row.expiry);
            let end_ms = now_ms + timeout_s.unwrap_or(0) * 1000;
            let patch = SandboxPatch {
                timeout_s,
                timeout_action: request.action,
                expiry: request.expiry,
                fixed_end_ms: Some((expiry == Expiry::Fixed).then_some(end_ms)),
                last_activity_ms: Some(now_ms),
                ..SandboxPatch::default()
            };
            let event = claim.event(
                "timeout_set",
                &caller,
                json!({"timeout_s": timeout_s.unwrap_or(0), "action": request.action}),
            );
            let timer = claim.timer_after(&patch);
            claim.commit(patch, vec![event], timer).await
        })
        .await
    }

    /// Extends the time of a sandbox to at least `timeout` from now. Never shortens it.
    pub async fn extend(&self, caller: &Caller, name: &str, timeout: Duration) -> Result<Sandbox> {
        let timeout_s = self.timeout_s(Some(timeout))?;
        let sandbox = self.existing(caller, name).await?;
        let (service, caller) = (self.clone(), caller.clone());
        self.detached(async move {
            let claim = service.claim(&sandbox.id, Operation::Change).await?;
            claim.check_exists()?;
            let now_ms = service.clock().now_ms();
            let end_ms = now_ms + timeout_s * 1000;
            let is_longer = match claim.row.expiry {
                Expiry::Fixed => claim.row.fixed_end_ms.is_none_or(|old_ms| old_ms < end_ms),
                Expiry::Idle => claim.row.timeout_s < timeout_s,
            };
            if !is_longer {
                return claim.release().await;
            }
            let patch = SandboxPatch {
                timeout_s: Some(timeout_s),
                fixed_end_ms: (claim.row.expiry == Expiry::Fixed).then_some(Some(end_ms)),
                last_activity_ms: Some(now_ms),
                ..SandboxPatch::default()
            };
            let event = claim.event("timeout_set", &caller, json!({"timeout_s": timeout_s}));
            let timer = claim.timer_after(&patch);
            claim.commit(patch, vec![event], timer).await
        })
        .await
    }
}
