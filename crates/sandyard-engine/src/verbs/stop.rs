//! Ends a sandbox's processes and keeps its files.

use sandyard_core::{SandboxId, SandboxState};

use crate::boot::shut_down;
use crate::context::Context;
use crate::error::Result;
use crate::spec::SandboxInfo;

/// Stops it. A stopped one is not changed.
pub(crate) fn stop(ctx: &Context, id: &SandboxId) -> Result<SandboxInfo> {
    end(ctx, id, None)
}

/// Stops it without a request, with a reason.
pub(crate) fn stop_because(ctx: &Context, id: &SandboxId, reason: &str) -> Result<SandboxInfo> {
    end(ctx, id, Some(reason))
}

fn end(ctx: &Context, id: &SandboxId, reason: Option<&str>) -> Result<SandboxInfo> {
    let mut open = ctx.open(id)?;
    let died = open.record.observed_state() == SandboxState::Stopped;
    if let Some(reason) = reason.filter(|_| !died) {
        open.record.ending = Some(reason.to_owned());
        open.record.write(&open.dir)?;
    }
    shut_down(ctx, &open.dir, &mut open.record)?;
    if open.record.state != SandboxState::Stopped {
        open.record.reason = match died {
            true => Some(open.record.reason_of_death()),
            false => open.record.ending.clone(),
        };
        open.record.ending = None;
        open.record.become_state(SandboxState::Stopped, &open.dir)?;
    }
    Ok(open.record.info())
}
