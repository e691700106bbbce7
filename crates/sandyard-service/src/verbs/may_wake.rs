//! Which sandboxes a call may wake, and which need no waking.

use sandyard_core::SandboxStatus;
use sandyard_store::model::{Operation, Sandbox};

use crate::error::{Result, ServiceError};

/// Which sandboxes a call may wake. It is decided when the pause or stop that is in progress is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MayWake {
    /// All: the caller asked for it.
    All,
    /// Those that a request for something else wakes.
    AutoResumed,
    /// None: the call is refused.
    None,
}

impl MayWake {
    /// Refuses a sandbox that does not run and may not be woken.
    pub(super) fn check(self, sandbox: &Sandbox) -> Result<()> {
        let is_refused = match self {
            Self::All => false,
            Self::AutoResumed => {
                sandbox.status == SandboxStatus::Paused && !sandbox.is_auto_resumed
            }
            Self::None => sandbox.status.can_wake(),
        };
        if !is_refused {
            return Ok(());
        }
        let (id, status) = (&sandbox.id, sandbox.status);
        let error = ServiceError::conflict(format!("sandbox `{id}` is {status}"));
        Err(error.hint("its automatic resume is off: connect to it first"))
    }
}

/// Says whether a sandbox runs and no operation is about to change that.
pub(super) fn is_ready(sandbox: &Sandbox) -> bool {
    let is_harmless = match &sandbox.claim {
        None => true,
        Some((operation, ..)) => {
            matches!(
                operation,
                Operation::Change | Operation::Copy | Operation::Reconcile
            )
        }
    };
    sandbox.status == SandboxStatus::Running && is_harmless
}
