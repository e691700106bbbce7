//! Deletes sandboxes of this data directory's engine.

use std::process::ExitCode;

use sandyard_core::SandboxId;

use super::super::lifecycle::apply_to_each;
use crate::global::Global;
use crate::output::Format;

/// Deletes these sandboxes, or all of them.
pub(in crate::commands) async fn rm(
    global: &Global,
    ids: Option<Vec<String>>,
    format: Format,
) -> anyhow::Result<ExitCode> {
    let engine = global.engine().await?;
    let (ids, pool_emptied) = match ids {
        Some(ids) => (ids, Ok(())),
        None => {
            // A killed server leaves its pool of pre-created sandboxes behind.
            let emptied = engine.set_pool(Vec::new()).await;
            let all = engine.list().await?;
            let ids = all.into_iter().map(|info| info.id.to_string()).collect();
            (ids, emptied.map(drop))
        }
    };
    let code = apply_to_each(&ids, format, async |name| {
        let id: SandboxId = name.parse()?;
        // Deleting a missing sandbox succeeds, so check first.
        engine.inspect(&id).await?;
        engine.delete(&id).await?;
        Ok((name.to_owned(), name.to_owned()))
    })
    .await;
    pool_emptied?;
    code
}
