//! Describes sandboxes, without taking their locks.

use std::fs;
use std::path::Path;

use sandyard_core::SandboxId;

use crate::context::{Context, not_found};
use crate::error::Result;
use crate::record::Record;
use crate::spec::SandboxInfo;
use crate::sys::OperationExt;

/// Describes one sandbox.
pub(crate) fn inspect(ctx: &Context, id: &SandboxId) -> Result<SandboxInfo> {
    let record = Record::read(&ctx.data.sandbox(id))?;
    record
        .map(|record| record.info())
        .ok_or_else(|| not_found(id))
}

/// Describes all sandboxes that are on record, except those of the pool.
pub(crate) fn list(ctx: &Context) -> Result<Vec<SandboxInfo>> {
    let spares = ctx.data.spares();
    let mut infos = Vec::new();
    for id in ids(ctx)? {
        if spares.join(id.as_str()).exists() {
            continue;
        }
        // A record that cannot be read must not hide the others; a sweep reports it.
        if let Ok(Some(record)) = Record::read(&ctx.data.sandbox(&id)) {
            infos.push(record.info());
        }
    }
    infos.sort_by(|a, b| (a.created_ms, &a.id).cmp(&(b.created_ms, &b.id)));
    Ok(infos)
}

/// The ids of all folders, on record or not.
pub(crate) fn ids(ctx: &Context) -> Result<Vec<SandboxId>> {
    ids_in(&ctx.data.sandboxes())
}

/// The names in `folder` that can be the id of a sandbox.
pub(crate) fn ids_in(folder: &Path) -> Result<Vec<SandboxId>> {
    let entries = fs::read_dir(folder).operation("list", folder.display())?;
    Ok(entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        // The folder of claimed user ids is beside those of the sandboxes.
        .filter(|id: &SandboxId| id.as_str() != "ids")
        .collect())
}
