//! Keeps the files of a sandbox as a template.

use sandyard_core::{SandboxId, SandboxState};
use sandyard_template::Template;

use crate::context::{Context, OpenSandbox};
use crate::disk;
use crate::error::{EngineError, Result};
use crate::freeze;

/// Copies what the sandbox wrote into a layer of the new template `name`. A running one stands still meanwhile.
pub(crate) fn snapshot(ctx: &Context, id: &SandboxId, name: &str) -> Result<Template> {
    let mut open = ctx.open(id)?;
    keep(ctx, &mut open, name)
}

/// As [`snapshot`], for a sandbox that is open already.
pub(crate) fn keep(ctx: &Context, open: &mut OpenSandbox, name: &str) -> Result<Template> {
    // Before it stands still: a copy that does not fit would only fill the disk on its way to failing.
    let bytes = disk::used_bytes(&open.dir, &open.record.disk);
    disk::check_free_space_for(&ctx.data, bytes)?;
    let runs = open.record.observed_state() == SandboxState::Running;
    if runs {
        freeze::freeze(ctx, &open.record)?;
    }
    let copied = copy(ctx, open, name);
    if runs {
        // A crash before this line leaves it frozen but on record as running: a sweep thaws such.
        freeze::thaw(ctx, &open.record)?;
    }
    copied
}

fn copy(ctx: &Context, open: &mut OpenSandbox, name: &str) -> Result<Template> {
    let (disk, _) = disk::open(&open.dir, &mut open.record.disk)?;
    let uppers = disk::uppers(&disk, &open.record.template);
    let kept = ctx
        .templates
        .snapshot(name, &open.record.template, &uppers, ctx.owners());
    let (template, _) = kept.map_err(|error| {
        EngineError::template(
            format!("keeping sandbox `{}` as `{name}`", open.record.id),
            &error,
        )
    })?;
    Ok(template)
}
