//! A running sandbox for a request that may not wake every sandbox, as for previews and E2B's data plane.

use std::time::Duration;

use sandyard_core::{Caller, ErrorKind, SandboxStatus};
use sandyard_store::model::{Expiry, Operation, Sandbox};
use tokio::time::{Instant, timeout};

use super::live::Live;
use crate::error::ServiceError;
use crate::service::Service;

/// Longest wait for a pause or stop in progress.
const SETTLE_WITHIN: Duration = Duration::from_secs(60);

/// How often to check for changes that another node made.
const POLL_EVERY: Duration = Duration::from_millis(100);

/// Whether a request may wake a sandbox that does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakePolicy {
    /// It may, unless the sandbox wakes only on request.
    Wake,
    /// It may not: the caller showed no credential of the sandbox, or only asks whether it runs.
    Never,
}

/// Why a sandbox cannot take a request.
#[derive(Debug)]
pub enum NotRunning {
    /// It is deleted, or being deleted.
    Deleted,
    /// It is paused or stopped, and this request may not wake it.
    Asleep,
    /// It could not be woken or looked up.
    Failed(ServiceError),
}

impl From<ServiceError> for NotRunning {
    fn from(error: ServiceError) -> Self {
        match error.kind {
            ErrorKind::SandboxNotFound | ErrorKind::NotFound => Self::Deleted,
            ErrorKind::Conflict => Self::Asleep,
            _ => Self::Failed(error),
        }
    }
}

impl Service {
    /// A sandbox to talk to, without a check of its owner: the caller has checked the access. Wakes it only if `policy` and the
    /// sandbox allow that. While the sandbox is being paused or stopped, the request waits for the outcome.
    ///
    /// # Errors
    ///
    /// When the sandbox does not run and is not woken.
    pub async fn live_for(&self, sandbox: Sandbox, policy: WakePolicy) -> Result<Live, NotRunning> {
        // `make_live` itself refuses sandboxes with an idle timeout that wake only on request.
        let may_wake = policy == WakePolicy::Wake
            && (sandbox.is_auto_resumed || sandbox.expiry == Expiry::Idle);
        let sandbox = if may_wake {
            sandbox
        } else {
            // `make_live` would wake a sandbox that is stopped or about to be.
            let settled = self.settled(sandbox).await?;
            if settled.status.is_present() && !settled.status.is_up() {
                return Err(NotRunning::Asleep);
            }
            settled
        };
        if !sandbox.status.is_present() {
            return Err(NotRunning::Deleted);
        }
        Ok(self.make_live(&Caller::system(), sandbox).await?)
    }

    /// Waits until the sandbox is not being paused or stopped any more.
    async fn settled(&self, mut sandbox: Sandbox) -> Result<Sandbox, NotRunning> {
        let give_up = Instant::now() + SETTLE_WITHIN;
        while is_going_down(&sandbox) && Instant::now() < give_up {
            let _ = timeout(POLL_EVERY, self.next_change()).await;
            let row = self.store().sandbox(&sandbox.id).await;
            sandbox = row
                .map_err(ServiceError::from)?
                .ok_or(NotRunning::Deleted)?;
        }
        Ok(sandbox)
    }
}

fn is_going_down(sandbox: &Sandbox) -> bool {
    let operation = sandbox.claim.as_ref().map(|(operation, ..)| *operation);
    sandbox.status == SandboxStatus::Running
        && matches!(operation, Some(Operation::Pause | Operation::Stop))
}
