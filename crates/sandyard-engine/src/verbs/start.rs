//! Starts a stopped sandbox again from its files.

use sandyard_core::{SandboxId, SandboxState};

use crate::boot::{boot, shut_down};
use crate::context::Context;
use crate::disk;
use crate::error::Result;
use crate::record::conflict;
use crate::spec::SandboxInfo;
use crate::steps::{Fault, Steps};

/// Starts it. A running one is not changed.
pub(crate) fn start(ctx: &Context, id: &SandboxId, fault: Option<Fault>) -> Result<SandboxInfo> {
    let mut open = ctx.open(id)?;
    match open.record.observed_state() {
        SandboxState::Running => return Ok(open.record.info()),
        SandboxState::Stopped => {}
        state => return Err(conflict(id, state, SandboxState::Running)),
    }
    ctx.memory.check()?;
    disk::check_space_to_start(&ctx.data)?;
    // Releases what a first process that died has left.
    shut_down(ctx, &open.dir, &mut open.record)?;
    open.record.state = SandboxState::Stopped;
    let fault = fault.filter(|_| ctx.allow_faults);
    let mut steps = Steps::new(fault);
    let result = boot(ctx, &open.dir, &mut open.record, &mut steps, fault);
    let result = steps.finish(result);
    if result.is_err() {
        // Its record may say `running` already. Its files are unchanged, and it can be started again.
        open.record.forget_life();
        open.record.state = SandboxState::Stopped;
        open.record.write(&open.dir)?;
    }
    result?;
    Ok(open.record.info())
}
