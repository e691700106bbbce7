//! Instances that no row of their place knows.
//!
//! Most are left behind: a create whose answer got lost and that went on elsewhere, a delete that was undone by a crash.
//! Their rows tell, and they are removed after a grace period. But a place may have got another name (another address of the same account,
//! another region set, a daemon that made itself a new id), and then all of its instances look like that. So an instance
//! that a row means, by its very id with a provider of this name, is never removed, wherever that row says it is; and where
//! nobody reaches that other place, the row moves here. With a provider of another name the same id is chance: the sandbox
//! was made there instead.
//!
//! Where there is no row at all, the database is not the one they were made with: a backup was restored, or another server
//! runs as the same installation. A row is written before anything is made and stays for long after it is deleted. Such instances are
//! somebody's; they are told of (see `unknown`) and left alone.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use sandyard_core::{Caller, ErrorKind, SandboxStatus};
use sandyard_provider::{Instance, Provider};
use sandyard_store::model::{Operation, Sandbox, SandboxPatch};
use serde_json::json;

use crate::claim::millis;
use crate::error::ServiceResult;
use crate::service::Service;

/// How long a row that moves here waits for others to finish with it.
const CLAIM_WITHIN: Duration = Duration::from_secs(1);
/// How many are seen to at once.
const AT_ONCE: usize = 8;
/// How long seeing to one may take.
const SEEN_TO_WITHIN: Duration = Duration::from_secs(60);

/// What was seen of strangers so far, by place and id.
pub(crate) type Strangers = HashMap<(String, String), Stranger>;

/// What was seen of one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stranger {
    /// Since when it is known to be one.
    since_ms: i64,
    /// Whether it was told of that no row knows it.
    is_told: bool,
}

/// What became of a stranger.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// A row explains it, or did.
    Settled,
    /// There is no row of it.
    Unknown,
}

impl Service {
    /// Removes instances that rows do not mean, once they have been known for so long to be such. The count begins with our
    /// own first look, not with their birth: a row that cannot be seen for a moment must not cost a sandbox.
    pub(crate) async fn see_to_strangers(
        &self,
        provider: &Arc<dyn Provider>,
        strangers: &[&Instance],
    ) {
        let info = provider.info();
        let now_ms = self.clock().now_ms();
        let grace_ms = millis(self.settings().stranger_grace);
        let due: Vec<(&Instance, bool)> = {
            let mut seen = self.strangers();
            let is_here = |id: &str| strangers.iter().any(|instance| instance.id == id);
            seen.retain(|(place, id), _| *place != info.location || is_here(id));
            let due = strangers.iter().map(|instance| {
                let key = (info.location.clone(), instance.id.clone());
                let new = Stranger {
                    since_ms: now_ms,
                    is_told: false,
                };
                let since_ms = seen.entry(key).or_insert(new).since_ms;
                (*instance, now_ms - since_ms >= grace_ms)
            });
            due.collect()
        };
        let unknown = AtomicUsize::new(0);
        stream::iter(&due)
            .for_each_concurrent(AT_ONCE, |one| async {
                let (instance, is_due) = *one;
                let work = self.see_to_stranger(provider, instance, is_due);
                match tokio::time::timeout(SEEN_TO_WITHIN, work).await {
                    Ok(Ok(Fate::Settled)) => {}
                    Ok(Ok(Fate::Unknown)) => {
                        unknown.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(Err(error)) => {
                        tracing::warn!(%error, instance.id, "An instance that no sandbox knows stays for now");
                    }
                    Err(_) => {
                        tracing::warn!(instance.id, "Seeing to an instance that no sandbox knows takes too long");
                    }
                }
            })
            .await;
        metrics::gauge!("sandyard_unknown_instances", "provider" => info.name.clone())
            .set(unknown.into_inner() as f64);
    }

    async fn see_to_stranger(
        &self,
        provider: &Arc<dyn Provider>,
        instance: &Instance,
        is_due: bool,
    ) -> ServiceResult<Fate> {
        // Asked again: the row may have come since.
        let row = match &instance.sandbox_id {
            Some(id) => self.store().sandbox(id).await?,
            None => None,
        };
        let Some(row) = row else {
            if is_due {
                self.tell_of_unknown(provider, instance);
            }
            return Ok(Fate::Unknown);
        };
        if row.status != SandboxStatus::Deleted {
            let info = provider.info();
            let is_here = row.location == info.location;
            match row.provider_id.as_deref() {
                None if is_here => return Ok(Fate::Settled),
                Some(id) if id == instance.id && is_here => return Ok(Fate::Settled),
                Some(id) if id == instance.id && row.provider == info.name => {
                    self.adopt(provider, row).await?;
                    return Ok(Fate::Settled);
                }
                // It has moved on and never comes back, or means another instance.
                _ => {}
            }
        }
        if is_due {
            tracing::warn!(instance.id, "Removing an instance that no sandbox knows");
            metrics::counter!("sandyard_strangers_removed_total").increment(1);
            provider.delete(&instance.id).await?;
        }
        Ok(Fate::Settled)
    }

    /// Says, once for each, that there is an instance the database knows nothing of.
    fn tell_of_unknown(&self, provider: &Arc<dyn Provider>, instance: &Instance) {
        let info = provider.info();
        let key = (info.location.clone(), instance.id.clone());
        let mut seen = self.strangers();
        let Some(stranger) = seen.get_mut(&key).filter(|stranger| !stranger.is_told) else {
            return;
        };
        stranger.is_told = true;
        let sandbox_id = instance.sandbox_id.as_ref().map_or("", |id| id.as_str());
        tracing::warn!(
            instance.id,
            sandbox.id = sandbox_id,
            provider = info.name,
            "The database knows nothing of an instance of this installation: was an older one restored, or does another server \
             run as the same installation? It is left alone. `sandyard provider unknown` lists all of them, and with \
             `--rm {}` removes this one",
            instance.id
        );
    }

    /// Moves a row here whose instance is here, if the place it names is nobody's any more.
    async fn adopt(&self, provider: &Arc<dyn Provider>, seen: Sandbox) -> ServiceResult<()> {
        let here = provider.info();
        if !self.places().is_reached_by_nobody(&seen.location).await? {
            return Ok(());
        }
        let claim = match self
            .claim_within(&seen.id, Operation::Reconcile, CLAIM_WITHIN)
            .await
        {
            // Somebody is at it; the next round looks again.
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
        let words = json!({"from": row.location, "to": here.location});
        let event = claim.event("place_renamed", &Caller::system(), words);
        // What is unfinished needs none: the reconciler finishes it, from here.
        let timer = claim.timer_after(&patch);
        tracing::warn!(
            sandbox.id = %row.id,
            from = row.location,
            to = here.location,
            "The place of a sandbox has another name now"
        );
        // First: once no sandbox is left there, nothing would lead here.
        self.store()
            .rename_place(&row.location, &here.location)
            .await?;
        claim.commit(patch, vec![event], timer).await?;
        // They may be reached another way now.
        self.agents().remove(&seen.id);
        self.grants().forget(&seen.id);
        Ok(())
    }
}
