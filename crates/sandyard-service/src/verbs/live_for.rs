//! A running sandbox for a request that may not wake every sandbox, as for previews and E2B's data plane.

use sandyard_core::{Caller, ErrorKind};
use sandyard_store::model::{Expiry, Sandbox};

use super::live::Live;
use super::may_wake::MayWake;
use crate::error::ServiceError;
use crate::service::Service;

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
        let is_woken = sandbox.is_auto_resumed || sandbox.expiry == Expiry::Idle;
        let may_wake = match policy {
            WakePolicy::Wake if is_woken => MayWake::AutoResumed,
            _ => MayWake::None,
        };
        if !sandbox.status.is_present() {
            return Err(NotRunning::Deleted);
        }
        Ok(self.make_live(&Caller::system(), sandbox, may_wake).await?)
    }
}
