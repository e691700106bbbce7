//! Removes sandboxes of this data directory's engine.

use sandyard_core::SandboxId;
use sandyard_engine::Engine;

use super::super::rm::Removed;
use crate::global::Global;

/// Removes these sandboxes, or all.
pub(in crate::commands) async fn rm(
    global: &Global,
    ids: Option<&[String]>,
) -> anyhow::Result<Removed> {
    let engine = global.engine().await?;
    let mut removed = Removed::default();
    let ids = match ids {
        Some(ids) => ids.to_vec(),
        None => {
            // Those that a server had kept ready, too: one that was killed takes nothing back.
            if let Err(error) = engine.set_pool(Vec::new()).await {
                removed.count("ready ones", Err(error.into()));
            }
            let all = engine.list().await?;
            all.into_iter().map(|info| info.id.to_string()).collect()
        }
    };
    for id in ids {
        removed.count(&id, remove(&engine, &id).await);
    }
    Ok(removed)
}

async fn remove(engine: &Engine, id: &str) -> anyhow::Result<()> {
    let id: SandboxId = id.parse()?;
    engine.inspect(&id).await?;
    Ok(engine.delete(&id).await?)
}
