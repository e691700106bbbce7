//! Gives a sandbox a new time.

use sandyard_core::Caller;
use sandyard_store::model::{Expiry, Operation, Sandbox, SandboxPatch};
use serde_json::json;

use crate::error::ServiceResult;
use crate::request::TimeoutRequest;
use crate::service::Service;

impl Service {
    /// Gives a sandbox a new time: from now on, and after every later activity again.
    pub async fn set_timeout(
        &self,
        caller: &Caller,
        name: &str,
        request: TimeoutRequest,
    ) -> ServiceResult<Sandbox> {
        let timeout_s = self.timeout_s(Some(request.timeout))?;
        let sandbox = self.existing(caller, name).await?;
        let (service, caller) = (self.clone(), caller.clone());
        self.detached(async move {
            let claim = service.claim(&sandbox.id, Operation::Change).await?;
            claim.check_exists()?;
            let now_ms = service.clock().now_ms();
            let expiry = request.expiry.unwrap_or(claim.row.expiry);
            let patch = SandboxPatch {
                timeout_s: Some(timeout_s),
                timeout_action: request.action,
                expiry: request.expiry,
                fixed_end_ms: Some((expiry == Expiry::Fixed).then(|| now_ms + timeout_s * 1000)),
                last_activity_ms: Some(now_ms),
                ..SandboxPatch::default()
            };
            let event = claim.event(
                "timeout_set",
                &caller,
                json!({"timeout_s": timeout_s, "action": request.action}),
            );
            let timer = claim.timer_after(&patch);
            claim.commit(patch, vec![event], timer).await
        })
        .await
    }
}
