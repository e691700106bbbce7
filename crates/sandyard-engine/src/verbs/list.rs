//! Tells what is known of sandboxes, without taking their locks.

use std::fs;
use std::path::Path;

use sandyard_core::SandboxId;

use crate::context::Context;
use crate::error::{EngineError, ErrorKind, Result};
use crate::record::Record;
use crate::spec::SandboxInfo;
use crate::sys::Doing;

/// Tells of one.
pub(crate) fn inspect(ctx: &Context, id: &SandboxId) -> Result<SandboxInfo> {
    let record = Record::read(&ctx.data.sandbox(id))?;
    record.map(|record| record.info()).ok_or_else(|| {
        EngineError::new(ErrorKind::NotFound, format!("no sandbox `{id}`"))
            .hint("`sandyard ls` lists them")
    })
}

/// Tells of all that are on record, but for the pool's.
pub(crate) fn list(ctx: &Context) -> Result<Vec<SandboxInfo>> {
    let spares = ctx.data.spares();
    let mut infos = Vec::new();
    for id in ids(ctx)? {
        if spares.join(id.as_str()).exists() {
            continue;
        }
        // One that cannot be read must not hide the others; a sweep reports it.
        if let Ok(Some(record)) = Record::read(&ctx.data.sandbox(&id)) {
            infos.push(record.info());
        }
    }
    infos.sort_by(|a, b| (a.created_ms, &a.id).cmp(&(b.created_ms, &b.id)));
    Ok(infos)
}

/// The folders there are, on record or not.
pub(crate) fn ids(ctx: &Context) -> Result<Vec<SandboxId>> {
    ids_in(&ctx.data.sandboxes())
}

/// The names in `folder` that can be a sandbox's.
pub(crate) fn ids_in(folder: &Path) -> Result<Vec<SandboxId>> {
    let entries = fs::read_dir(folder).doing("list", folder.display())?;
    Ok(entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        // The folder of claims lies beside the sandboxes' own.
        .filter(|id: &SandboxId| id.as_str() != "ids")
        .collect())
}
