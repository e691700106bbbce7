//! A sandbox that runs, woken only if it may be.

use std::time::Duration;

use sandyard_core::{ErrorKind, SandboxStatus};
use sandyard_service::{Live, Sandbox, ServiceError};
use sandyard_store::model::{Expiry, Operation};
use tokio::time::{Instant, sleep};

use crate::app::App;

/// How long to wait for somebody to finish what is being done to a sandbox.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks at it.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Why there is no sandbox to talk to.
#[derive(Debug)]
pub(crate) enum Absent {
    /// It is gone.
    Gone,
    /// It rests, and does not wake by itself or not for this.
    Resting,
    /// It could not be brought up, or not be looked at.
    Failed(ServiceError),
}

impl From<ServiceError> for Absent {
    fn from(error: ServiceError) -> Self {
        match error.kind {
            ErrorKind::SandboxNotFound | ErrorKind::NotFound => Self::Gone,
            ErrorKind::Conflict => Self::Resting,
            _ => Self::Failed(error),
        }
    }
}

/// Gives a sandbox that runs. One that rests is woken if it wakes by itself and `may_wake` says that this request is reason
/// enough; while something is done to it, the request waits.
pub(crate) async fn awake(app: &App, sandbox: Sandbox, may_wake: bool) -> Result<Live, Absent> {
    // The lifecycle itself knows which of its own do not wake.
    let is_own = sandbox.expiry == Expiry::Idle;
    let sandbox = if may_wake && (sandbox.is_auto_resumed || is_own) {
        sandbox
    } else {
        // Asking for a live one would wake one that is stopped, or about to rest.
        let settled = settle(app, sandbox).await?;
        if is_there(settled.status) && !is_up(settled.status) {
            return Err(Absent::Resting);
        }
        settled
    };
    if !is_there(sandbox.status) {
        return Err(Absent::Gone);
    }
    Ok(app.service().live_for_preview(&sandbox).await?)
}

/// Waits until nobody is putting the sandbox to rest any more.
async fn settle(app: &App, mut sandbox: Sandbox) -> Result<Sandbox, Absent> {
    let give_up = Instant::now() + PATIENCE;
    while is_going_down(&sandbox) && Instant::now() < give_up {
        sleep(LOOK_EVERY).await;
        let row = app.service().find_for_preview(sandbox.id.as_str()).await?;
        sandbox = row.ok_or(Absent::Gone)?;
    }
    Ok(sandbox)
}

fn is_going_down(sandbox: &Sandbox) -> bool {
    let operation = sandbox.claim.as_ref().map(|(operation, ..)| *operation);
    sandbox.status == SandboxStatus::Running
        && matches!(operation, Some(Operation::Pause | Operation::Stop))
}

fn is_up(status: SandboxStatus) -> bool {
    matches!(status, SandboxStatus::Running | SandboxStatus::Creating)
}

/// Says whether a sandbox is not gone, or on its way out.
pub(crate) fn is_there(status: SandboxStatus) -> bool {
    !matches!(status, SandboxStatus::Deleting | SandboxStatus::Deleted)
}
