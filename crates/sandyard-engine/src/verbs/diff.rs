//! Lists the files a sandbox changed.

use std::fs;
use std::path::Path;

use sandyard_core::SandboxId;
use sandyard_template::Diff;

use crate::boot::hostname;
use crate::context::Context;
use crate::disk;
use crate::error::{EngineError, Result};
use crate::init;

/// Reads the changes from the overlay's upper folders. Files that the engine wrote are left out.
pub(crate) fn diff(ctx: &Context, id: &SandboxId) -> Result<Diff> {
    let mut open = ctx.open(id)?;
    let (disk, _) = disk::open(&*ctx.kernel, &open.dir, &mut open.record.disk)?;
    let upper_dirs = disk::upper_dirs(&disk, &open.record.template);
    let mut diff =
        sandyard_template::diff(&open.record.template, &upper_dirs).map_err(|error| {
            EngineError::template(
                format!("comparing sandbox `{id}` with its template"),
                &error,
            )
        })?;
    let generated: Vec<_> = init::possible_files(&hostname(&open.record)).collect();
    if let Some((_, root)) = upper_dirs.iter().find(|(key, _)| key == "root") {
        diff.changes.retain(|change| {
            let mut own_files = generated
                .iter()
                .filter(|(path, _)| change.path == Path::new("/").join(path));
            !own_files.any(|(path, text)| {
                fs::read(root.join(path)).is_ok_and(|found| found == text.as_bytes())
            })
        });
    }
    Ok(diff)
}
