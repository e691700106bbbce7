//! Orphans: instances that no row of their location has.
//!
//! Most are leftovers: of a create whose answer got lost and that went on at another provider, or of a delete that a crash undid. Their
//! rows show that, and they are removed after a grace period.
//!
//! A location may also get another name: another address of the same account, another region setting, a daemon with a new id. Then all
//! of its instances look like leftovers. So an instance that a row names, by its id and with a provider of this name, is never removed,
//! whatever location the row has. If no server reaches that other location, the row moves here. With a provider of another name the
//! same id is chance.
//!
//! If there is no row at all, the database is not the one that the instances were made with: a backup was restored, or another server
//! runs as the same installation. (A row is inserted before its instance is made and stays for long after the delete.) Such *unknown*
//! instances belong to somebody. They are reported (see `verbs/unknown.rs`) and left alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use sandyard_core::clock::millis;
use sandyard_core::{Caller, ErrorKind, SandboxStatus};
use sandyard_provider::{Instance, Provider};
use sandyard_store::model::{Operation, Sandbox, SandboxPatch};
use serde_json::json;

use crate::error::Result;
use crate::service::Service;

/// How long moving a row waits for another operation on its sandbox.
const CLAIM_WITHIN: Duration = Duration::from_secs(1);
/// Most orphans handled at the same time.
const MAX_CONCURRENT: usize = 8;
/// How long handling one orphan may take.
const REAP_WITHIN: Duration = Duration::from_secs(60);

/// What an orphan turned out to be.
#[derive(Clone, Copy, Debug)]
enum Orphan {
    /// A row explains it.
    Explained,
    /// The database does not know it.
    Unknown,
}

impl Service {
    /// Removes orphans once they have been seen for the grace period. It counts from this server's first sight of them, not from their
    /// creation: a row that cannot be read for a moment must not cost a sandbox.
    pub(crate) async fn reap_orphans(&self, provider: &Arc<dyn Provider>, orphans: &[&Instance]) {
        let info = provider.info();
        let now_ms = self.clock().now_ms();
        let grace_ms = millis(self.settings().orphan_grace);
        let ids: Vec<&str> = orphans.iter().map(|orphan| orphan.id.as_str()).collect();
        let first_seen_ms = self.orphans().update(&info.location, &ids, now_ms);
        let unknown = AtomicUsize::new(0);
        stream::iter(orphans.iter().zip(first_seen_ms))
            .for_each_concurrent(MAX_CONCURRENT, |(instance, first_seen_ms)| {
                let unknown = &unknown;
                async move {
                    let is_due = now_ms - first_seen_ms >= grace_ms;
                    let reaping = self.reap_orphan(provider, instance, is_due);
                    match tokio::time::timeout(REAP_WITHIN, reaping).await {
                        Ok(Ok(Orphan::Explained)) => {}
                        Ok(Ok(Orphan::Unknown)) => {
                            unknown.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok(Err(error)) => {
                            tracing::warn!(%error, instance.id, "Failed to remove an orphaned instance; trying again later");
                        }
                        Err(_) => {
                            tracing::warn!(instance.id, "Removing an orphaned instance takes too long; trying again later");
                        }
                    }
                }
            })
            .await;
        metrics::gauge!("sandyard_unknown_instances", "provider" => info.name.clone())
            .set(unknown.into_inner() as f64);
    }

    async fn reap_orphan(
        &self,
        provider: &Arc<dyn Provider>,
        instance: &Instance,
        is_due: bool,
    ) -> Result<Orphan> {
        // Read again: the row may have been inserted since the pass began.
        let row = match &instance.sandbox_id {
            Some(id) => self.store().sandbox(id).await?,
            None => None,
        };
        let Some(row) = row else {
            if is_due {
                self.report_unknown(provider, instance);
            }
            return Ok(Orphan::Unknown);
        };
        if row.status != SandboxStatus::Deleted {
            let info = provider.info();
            let is_here = row.location == info.location;
            match row.provider_id.as_deref() {
                None if is_here => return Ok(Orphan::Explained),
                Some(id) if id == instance.id && is_here => return Ok(Orphan::Explained),
                Some(id) if id == instance.id && row.provider == info.name => {
                    self.move_row_here(provider, row).await?;
                    return Ok(Orphan::Explained);
                }
                // The sandbox was made at another provider, or its row names another instance.
                _ => {}
            }
        }
        if is_due {
            tracing::warn!(instance.id, "Removing an orphaned instance");
            metrics::counter!("sandyard_orphans_removed_total").increment(1);
            provider.delete(&instance.id).await?;
        }
        Ok(Orphan::Explained)
    }

    /// Logs, once for each, that the database does not know an instance.
    fn report_unknown(&self, provider: &Arc<dyn Provider>, instance: &Instance) {
        let info = provider.info();
        if !self.orphans().mark_reported(&info.location, &instance.id) {
            return;
        }
        let sandbox_id = instance.sandbox_id.as_ref().map_or("", |id| id.as_str());
        tracing::warn!(
            instance.id,
            sandbox.id = sandbox_id,
            provider = info.name,
            "The database does not know an instance of this installation. Was an older database restored, or does another server \
             run as the same installation? The instance is left alone. `sandyard provider orphans` lists all unknown instances; \
             `sandyard provider orphans --rm {}` removes this one",
            instance.id
        );
    }

    /// Moves a row to this location, where its instance is, unless a server still reaches the location that the row has.
    async fn move_row_here(&self, provider: &Arc<dyn Provider>, seen: Sandbox) -> Result<()> {
        let here = provider.info();
        if !self
            .registry()
            .is_unreachable_location(&seen.location)
            .await?
        {
            return Ok(());
        }
        let claim = match self
            .claim_within(&seen.id, Operation::Reconcile, CLAIM_WITHIN)
            .await
        {
            // Another operation holds it; the next pass tries again.
            Err(error) if error.kind == ErrorKind::Busy => return Ok(()),
            claim => claim?,
        };
        let row = &claim.row;
        let is_same = (&row.location, &row.provider_id) == (&seen.location, &seen.provider_id);
        if !is_same || row.status == SandboxStatus::Deleted {
            claim.release().await?;
            return Ok(());
        }
        let patch = SandboxPatch {
            location: Some(here.location.clone()),
            ..SandboxPatch::default()
        };
        let data = json!({"from": row.location, "to": here.location});
        let event = claim.event("place_renamed", &Caller::system(), data);
        // An unfinished create or delete needs no timer: the reconciler of this location finishes it.
        let timer = claim.timer_after(&patch);
        tracing::warn!(
            sandbox.id = %row.id,
            from = row.location,
            to = here.location,
            "The location of a sandbox has another name now"
        );
        // Snapshots and volumes first: once no sandbox has the old name, nothing leads to the new one.
        self.store()
            .rename_location(&row.location, &here.location)
            .await?;
        claim.commit(patch, vec![event], timer).await?;
        // Its agent may have another address now.
        self.agents().remove(&seen.id);
        self.grants().forget(&seen.id);
        Ok(())
    }
}
