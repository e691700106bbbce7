//! What should be against what is.
//!
//! | row | instance | what is done |
//! |---|---|---|
//! | running | paused | resumed |
//! | paused | running | paused |
//! | running, paused | stopped | row `stopped`, with the reason; the next request starts it from its files |
//! | running, paused, stopped | none | row `error`, with the reason |
//! | error | any | row as the instance is |
//! | creating, unclaimed | running | the create is finished |
//! | creating, unclaimed | none | row `deleted`: nobody was told of it |
//! | deleting, unclaimed | any | the delete is finished |
//! | none, deleted, or with another instance | any | removed after a grace period |
//! | any, without a timer | | the timer is set |
//! | a volume's, deleting, or creating for long | | the volume is removed |
//! | running, paused | running, paused | its grant is pushed, unless this process did: see `grants` |
//!
//! Rows with a live claim are left alone: somebody is at it. Every step may be repeated.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use sandyard_core::{Caller, SandboxId, SandboxState, SandboxStatus};
use sandyard_provider::{Instance, Provider};
use sandyard_store::model::{Operation, Sandbox, SandboxFilter, SandboxPatch, TimerPlan};
use serde_json::json;

use crate::claim::{TOPIC, millis};
use crate::error::ServiceResult;
use crate::expiry;
use crate::service::Service;

/// Sandboxes brought in order at once.
const AT_ONCE: usize = 8;

impl Service {
    /// Brings rows and reality together in every place this node reaches.
    pub(crate) async fn reconcile(&self) {
        for provider in self.places().local() {
            let location = &provider.info().location;
            match self.reconcile_place(provider).await {
                Ok(Some(found)) => tracing::debug!(location, found, "Reconciled"),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, location, "Reconciling failed; it is tried again")
                }
            }
        }
    }

    /// One place; none: another server is at it. Returns how many sandboxes were looked at.
    async fn reconcile_place(&self, provider: &Arc<dyn Provider>) -> ServiceResult<Option<usize>> {
        let location = provider.info().location.clone();
        let now_ms = self.clock().now_ms();
        let lease = format!("reconcile {location}");
        let until_ms = now_ms + millis(self.settings().reconcile_every);
        if !self
            .store()
            .take_lease(&lease, self.node().lease_name(), now_ms, until_ms)
            .await?
        {
            return Ok(None);
        }
        // Instances first: one that is made after this is in no list and looked at next time.
        let instances = provider.list().await?;
        let rows = self.rows_of(&location).await?;
        let by_sandbox: HashMap<&SandboxId, &Instance> = instances
            .iter()
            .filter_map(|instance| Some((instance.sandbox_id.as_ref()?, instance)))
            .collect();
        // A few at once: one that hangs must not keep the others waiting.
        stream::iter(&rows)
            .for_each_concurrent(AT_ONCE, |row| async {
                let instance = by_sandbox.get(&row.id).copied();
                if let Err(error) = self.settle(row, instance).await {
                    tracing::warn!(%error, sandbox.id = %row.id, "Sandbox could not be reconciled; it is tried again");
                }
            })
            .await;
        let known: HashMap<&SandboxId, Option<&str>> = rows
            .iter()
            .map(|row| (&row.id, row.provider_id.as_deref()))
            .collect();
        let is_stranger = |instance: &&Instance| {
            let row = instance.sandbox_id.as_ref().and_then(|id| known.get(id));
            match row {
                None => true,
                Some(None) => false,
                Some(Some(id)) => *id != instance.id,
            }
        };
        let strangers: Vec<&Instance> = instances.iter().filter(is_stranger).collect();
        self.remove_strangers(provider, &strangers).await;
        self.wind_timers(&location).await?;
        self.settle_volumes(&location).await?;
        self.forget_deleted(&rows).await?;
        Ok(Some(rows.len()))
    }

    async fn rows_of(&self, location: &str) -> ServiceResult<Vec<Sandbox>> {
        self.all_rows(SandboxFilter {
            location: Some(location.to_owned()),
            ..SandboxFilter::default()
        })
        .await
    }

    /// All rows that a filter lets through, however many pages that is.
    pub(crate) async fn all_rows(&self, mut filter: SandboxFilter) -> ServiceResult<Vec<Sandbox>> {
        let mut rows = Vec::new();
        loop {
            let page = self.store().list_sandboxes(&filter).await?;
            rows.extend(page.items);
            match page.next {
                Some(cursor) => filter.cursor = Some(cursor),
                None => return Ok(rows),
            }
        }
    }

    /// Brings one row and its instance together.
    async fn settle(&self, row: &Sandbox, instance: Option<&Instance>) -> ServiceResult<()> {
        let now_ms = self.clock().now_ms();
        if row
            .claim
            .as_ref()
            .is_some_and(|(_, _, until)| *until > now_ms)
        {
            return Ok(());
        }
        let caller = Caller::system();
        match (row.status, instance.map(|instance| instance.state)) {
            (SandboxStatus::Creating, _) => self.settle_create(row.clone()).await,
            (SandboxStatus::Deleting, _) => self
                .delete_by_id(&caller, &row.id, "unfinished delete")
                .await
                .map(drop),
            (SandboxStatus::Running, Some(SandboxState::Running))
            | (SandboxStatus::Paused, Some(SandboxState::Paused))
            | (SandboxStatus::Stopped, Some(SandboxState::Stopped))
            | (SandboxStatus::Deleted, _)
            | (SandboxStatus::Error, None)
            | (_, Some(SandboxState::Creating | SandboxState::Deleting)) => Ok(()),
            (
                SandboxStatus::Running
                | SandboxStatus::Paused
                | SandboxStatus::Stopped
                | SandboxStatus::Error,
                _,
            ) => self.mend(&caller, &row.id).await,
        }
    }

    /// Makes the instance what the row says where that keeps everything, else the row what the instance is.
    pub(crate) async fn mend(&self, caller: &Caller, id: &SandboxId) -> ServiceResult<()> {
        let claim = self.claim(id, Operation::Reconcile).await?;
        let provider = self.places().provider(&claim.row.location).await?;
        let provider_id = claim.row.provider_id.clone().unwrap_or_default();
        let state = provider
            .inspect(&provider_id)
            .await?
            .map(|instance| instance.state);
        match (claim.row.status, state) {
            (SandboxStatus::Running, Some(SandboxState::Paused)) => {
                provider.resume(&provider_id).await?;
                claim.release().await?;
            }
            (SandboxStatus::Paused, Some(SandboxState::Running)) => {
                provider.pause(&provider_id).await?;
                claim.release().await?;
            }
            (SandboxStatus::Stopped, Some(SandboxState::Running | SandboxState::Paused)) => {
                provider.stop(&provider_id).await?;
                claim.release().await?;
            }
            (
                SandboxStatus::Running
                | SandboxStatus::Paused
                | SandboxStatus::Stopped
                | SandboxStatus::Error,
                _,
            ) => {
                // An unusable sandbox is what this found, not a failure of looking.
                if let Err(error) = self.accept_reality(caller, claim, None).await {
                    tracing::warn!(sandbox.id = %id, %error, "Sandbox cannot be used any more");
                }
            }
            _ => drop(claim.release().await?),
        }
        Ok(())
    }

    /// Ends a create that a dead server left behind.
    pub(crate) async fn settle_create(&self, row: Sandbox) -> ServiceResult<()> {
        let claim = self.claim(&row.id, Operation::Reconcile).await?;
        if claim.row.status != SandboxStatus::Creating {
            claim.release().await?;
            return Ok(());
        }
        let provider = self.places().provider(&row.location).await?;
        let made = provider
            .list()
            .await?
            .into_iter()
            .find(|instance| instance.sandbox_id.as_ref() == Some(&row.id));
        let caller = Caller::system();
        match made {
            Some(instance) if instance.state == SandboxState::Running => {
                self.finish_create(&caller, claim, &provider, Ok(instance))
                    .await?;
            }
            _ => {
                let mut claim = claim;
                let why = "its server died while making it";
                let event = claim.event("create_failed", &caller, json!({"detail": why}));
                let patch = SandboxPatch {
                    status: Some(SandboxStatus::Deleting),
                    reason: Some(Some(why.to_owned())),
                    ..SandboxPatch::default()
                };
                claim.note(patch, vec![event], TimerPlan::Keep).await?;
                claim.release().await?;
                self.delete_by_id(&caller, &row.id, why).await?;
            }
        }
        Ok(())
    }

    /// Removes instances that no row knows, once they have been known for so long to be such. The count begins with our
    /// own first look, not with their birth: a row that cannot be seen for a moment must not cost a sandbox.
    async fn remove_strangers(&self, provider: &Arc<dyn Provider>, strangers: &[&Instance]) {
        let now_ms = self.clock().now_ms();
        let grace_ms = millis(self.settings().stranger_grace);
        let due: Vec<&Instance> = {
            let mut seen = self.strangers();
            seen.retain(|id, _| strangers.iter().any(|instance| instance.id == *id));
            strangers
                .iter()
                .filter(|instance| {
                    let since_ms = *seen.entry(instance.id.clone()).or_insert(now_ms);
                    now_ms - since_ms >= grace_ms
                })
                .copied()
                .collect()
        };
        for instance in due {
            if let Err(error) = self.remove_stranger(provider, instance).await {
                tracing::warn!(%error, instance.id, "An instance that no sandbox knows stays for now");
            }
        }
    }

    async fn remove_stranger(
        &self,
        provider: &Arc<dyn Provider>,
        instance: &Instance,
    ) -> ServiceResult<()> {
        // Asked again: the row may have come since.
        if let Some(id) = &instance.sandbox_id
            && let Some(row) = self.store().sandbox(id).await?
            && row.status != SandboxStatus::Deleted
            && row.provider_id.as_ref().is_none_or(|id| *id == instance.id)
        {
            return Ok(());
        }
        tracing::warn!(instance.id, "Removing an instance that no sandbox knows");
        metrics::counter!("sandyard_strangers_removed_total").increment(1);
        Ok(provider.delete(&instance.id).await?)
    }

    /// Sees to it that every sandbox has a timer that is not given up for good.
    async fn wind_timers(&self, location: &str) -> ServiceResult<()> {
        for id in self.store().sandboxes_without_timer(location).await? {
            let Some(row) = self.store().sandbox(&id).await? else {
                continue;
            };
            let last_ms = self.last_activity_ms(&row);
            let plan = expiry::plan(&row, last_ms, self.settings().retention);
            if let TimerPlan::Set { due_ms } = plan {
                self.timers()
                    .set(TOPIC, id.as_str(), location, due_ms)
                    .await?;
            }
        }
        let long_ago_ms = self.clock().now_ms() - DEAD_REST_MS;
        for timer in self.timers().dead().await? {
            if timer.location == location && timer.due_ms < long_ago_ms {
                self.timers().revive(&timer.topic, &timer.subject).await?;
            }
        }
        Ok(())
    }

    /// Frees what is kept in memory of sandboxes that another server deleted. Those among `rows` are there.
    async fn forget_deleted(&self, rows: &[Sandbox]) -> ServiceResult<()> {
        let there: HashSet<&SandboxId> = rows.iter().map(|row| &row.id).collect();
        let mut ids = self.log_books().ids();
        ids.extend(self.agents().keys().cloned());
        ids.retain(|id| !there.contains(id));
        for id in ids {
            let row = self.store().sandbox(&id).await?;
            if row.is_none_or(|row| row.status == SandboxStatus::Deleted) {
                self.log_books().forget(&id);
                self.agents().remove(&id);
            }
        }
        Ok(())
    }
}

/// How long a timer that was given up rests before it gets another chance: what broke may have been mended.
const DEAD_REST_MS: i64 = 3_600_000;
