//! Resumes a paused sandbox.

use sandyard_core::{SandboxId, SandboxState};

use super::pause::DISK_FULL;
use crate::context::Context;
use crate::disk;
use crate::error::Result;
use crate::record::conflict;
use crate::spec::SandboxInfo;

/// Resumes it. A running one is not changed.
pub(crate) fn resume(ctx: &Context, id: &SandboxId) -> Result<SandboxInfo> {
    resume_if(ctx, id, |_| true)
}

/// Resumes it if it was paused because the disk was full. One that a user paused is not changed.
pub(crate) fn resume_for_room(ctx: &Context, id: &SandboxId) -> Result<SandboxInfo> {
    resume_if(ctx, id, |reason| reason == Some(DISK_FULL))
}

fn resume_if(
    ctx: &Context,
    id: &SandboxId,
    is_wanted: impl FnOnce(Option<&str>) -> bool,
) -> Result<SandboxInfo> {
    let mut open = ctx.open(id)?;
    match open.record.observed_state() {
        SandboxState::Running => {}
        SandboxState::Paused if !is_wanted(open.record.reason.as_deref()) => {}
        SandboxState::Paused => {
            if open.record.reason.as_deref() == Some(DISK_FULL) {
                // It would continue to write.
                disk::check_free_space(&ctx.data)?;
                open.record.reason = None;
            }
            ctx.runtime.thaw(ctx, &open.record)?;
            open.record.become_state(SandboxState::Running, &open.dir)?;
        }
        state => return Err(conflict(id, state, SandboxState::Running)),
    }
    Ok(open.record.info())
}
