//! Saves the files of a sandbox as a template.

use sandyard_core::{SandboxId, SandboxState};
use sandyard_template::Template;

use crate::context::{Context, OpenSandbox};
use crate::disk;
use crate::error::{EngineError, Result};

/// Copies what the sandbox wrote into a layer of the new template `name`. A running one is frozen meanwhile.
pub(crate) fn snapshot(ctx: &Context, id: &SandboxId, name: &str) -> Result<Template> {
    let mut open = ctx.open(id)?;
    snapshot_open(ctx, &mut open, name)
}

/// As [`snapshot`], for a sandbox that is locked already.
pub(crate) fn snapshot_open(ctx: &Context, open: &mut OpenSandbox, name: &str) -> Result<Template> {
    // Before it is frozen: a copy that does not fit would fill the disk and then fail.
    let bytes = disk::used_bytes(&open.dir, &open.record.disk);
    disk::check_free_space_for(&ctx.data, bytes)?;
    let is_running = open.record.observed_state() == SandboxState::Running;
    if is_running {
        ctx.runtime.freeze(ctx, &open.record)?;
    }
    let copied = copy(ctx, open, name);
    if is_running {
        // A crash before this line leaves it frozen but on record as running; a sweep thaws it.
        ctx.runtime.thaw(ctx, &open.record)?;
    }
    copied
}

fn copy(ctx: &Context, open: &mut OpenSandbox, name: &str) -> Result<Template> {
    let (disk, _) = disk::open(&*ctx.kernel, &open.dir, &mut open.record.disk)?;
    let upper_dirs = disk::upper_dirs(&disk, &open.record.template);
    let saved = ctx
        .templates
        .snapshot(name, &open.record.template, &upper_dirs, ctx.owners());
    let (template, _) = saved.map_err(|error| {
        EngineError::template(
            format!("saving sandbox `{}` as template `{name}`", open.record.id),
            &error,
        )
    })?;
    Ok(template)
}
