//! Pauses a sandbox with its memory kept.

use sandyard_core::{SandboxId, SandboxState};

use crate::context::Context;
use crate::error::Result;
use crate::record::conflict;
use crate::spec::SandboxInfo;

/// Reason of a sandbox that was paused without a request.
pub(crate) const DISK_FULL: &str = "it went on writing while the host's disk was nearly full";

/// Pauses it. A paused one is not changed.
pub(crate) fn pause(ctx: &Context, id: &SandboxId) -> Result<SandboxInfo> {
    freeze_because(ctx, id, None)
}

/// Pauses it without a request, with a reason.
pub(crate) fn pause_because(ctx: &Context, id: &SandboxId, reason: &str) -> Result<SandboxInfo> {
    freeze_because(ctx, id, Some(reason))
}

fn freeze_because(ctx: &Context, id: &SandboxId, reason: Option<&str>) -> Result<SandboxInfo> {
    let mut open = ctx.open(id)?;
    match open.record.observed_state() {
        SandboxState::Paused => {
            // A user wants it paused now, so it must not continue when there is room again.
            if reason.is_none() && open.record.reason.take_if(|is| is == DISK_FULL).is_some() {
                open.record.write(&open.dir)?;
            }
        }
        SandboxState::Running => {
            // Recorded first. If this worker dies in between, the record says `paused` and the next resume repairs it; the other
            // way round, a sandbox on record as running would not answer.
            open.record.reason = reason.map(str::to_owned);
            open.record.become_state(SandboxState::Paused, &open.dir)?;
            if let Err(error) = ctx.runtime.freeze(ctx, &open.record) {
                let _ = ctx.runtime.thaw(ctx, &open.record);
                open.record.become_state(SandboxState::Running, &open.dir)?;
                return Err(error);
            }
        }
        state => return Err(conflict(id, state, SandboxState::Paused)),
    }
    Ok(open.record.info())
}
