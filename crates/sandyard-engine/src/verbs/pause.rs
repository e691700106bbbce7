//! Freezes a sandbox with its memory kept.

use sandyard_core::{SandboxId, SandboxState};

use crate::context::Context;
use crate::error::Result;
use crate::freeze;
use crate::record::conflict;
use crate::spec::SandboxInfo;

/// Why a sandbox is paused that nobody paused.
pub(crate) const DISK_FULL: &str = "it went on writing while the host's disk was nearly full";

/// Freezes it; one that is frozen is left as it is.
pub(crate) fn pause(ctx: &Context, id: &SandboxId) -> Result<SandboxInfo> {
    freeze_because(ctx, id, None)
}

/// Freezes it without having been asked, and says why.
pub(crate) fn pause_because(ctx: &Context, id: &SandboxId, reason: &str) -> Result<SandboxInfo> {
    freeze_because(ctx, id, Some(reason))
}

fn freeze_because(ctx: &Context, id: &SandboxId, reason: Option<&str>) -> Result<SandboxInfo> {
    let mut open = ctx.open(id)?;
    match open.record.observed_state() {
        SandboxState::Paused => {
            // Now somebody wants it paused: it must not go on by itself when there is room again.
            if reason.is_none() && open.record.reason.take_if(|is| is == DISK_FULL).is_some() {
                open.record.write(&open.dir)?;
            }
        }
        SandboxState::Running => {
            // On record first: frozen but said to run would be a sandbox that does not answer, thawed but said to be
            // paused is mended by the next resume.
            open.record.reason = reason.map(str::to_owned);
            open.record.become_state(SandboxState::Paused, &open.dir)?;
            if let Err(error) = freeze::freeze(ctx, &open.record) {
                let _ = freeze::thaw(ctx, &open.record);
                open.record.become_state(SandboxState::Running, &open.dir)?;
                return Err(error);
            }
        }
        state => return Err(conflict(id, state, SandboxState::Paused)),
    }
    Ok(open.record.info())
}
