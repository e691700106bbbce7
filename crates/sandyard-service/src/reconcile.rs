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
//! | deleted, elsewhere, or with another instance | any | removed after a grace period: see `strangers` |
//! | none | any | told of and left alone: see `strangers` |
//! | elsewhere, with this very instance | any | row moved here, if nobody is there: see `strangers` |
//! | any, without a timer | | the timer is set |
//! | a volume's, deleting, or creating for long | | the volume is removed |
//! | running, paused | running, paused | its grant is pushed, unless this process did: see `grants` |
//!
//! Rows with a live claim are left alone: somebody is at it. Every step may be repeated.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use sandyard_core::{Caller, ErrorKind, SandboxId, SandboxState, SandboxStatus};
use sandyard_provider::{Instance, Provider, ProviderErrorKind};
use sandyard_store::model::{Operation, Sandbox, SandboxFilter, SandboxPatch, TimerPlan};
use serde_json::json;

use crate::claim::{TOPIC, millis};
use crate::error::{ServiceError, ServiceResult};
use crate::expiry;
use crate::places::location_of;
use crate::service::Service;

/// Sandboxes brought in order at once.
const AT_ONCE: usize = 8;
/// How long a place has to list its instances: it may have many pages of them.
pub(crate) const LIST_WITHIN: Duration = Duration::from_secs(300);
/// How long bringing one place in order may take.
const ROUND_WITHIN: Duration = Duration::from_secs(600);

impl Service {
    /// Brings rows and reality together in one place this node reaches, within bounds: a place where nothing ends is begun anew.
    pub(crate) async fn reconcile(&self, provider: &Arc<dyn Provider>) {
        let Some(location) = location_of(provider) else {
            return;
        };
        let round = self.reconcile_place(provider);
        match tokio::time::timeout(ROUND_WITHIN, round).await {
            Ok(Ok(Some(found))) => tracing::debug!(location, found, "Reconciled"),
            Ok(Ok(None)) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, location, "Reconciling failed; it is tried again");
            }
            Err(_) => tracing::warn!(location, "Reconciling took too long; it is tried again"),
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
        let instances = tokio::time::timeout(LIST_WITHIN, provider.list())
            .await
            .map_err(|_| {
                ServiceError::new(ErrorKind::TimedOut, "listing instances took too long")
            })??;
        let rows = self.rows_of(&location).await?;
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
        // A sandbox may have an instance that its row does not mean.
        let (strangers, own): (Vec<&Instance>, Vec<&Instance>) =
            instances.iter().partition(is_stranger);
        let by_sandbox: HashMap<&SandboxId, &Instance> = own
            .into_iter()
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
        self.wind_timers(&location).await?;
        self.settle_volumes(&location).await?;
        self.forget_deleted(&rows).await?;
        // Last: nobody waits for them.
        self.see_to_strangers(provider, &strangers).await;
        Ok(Some(rows.len()))
    }

    /// All rows of a place.
    pub(crate) async fn rows_of(&self, location: &str) -> ServiceResult<Vec<Sandbox>> {
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
        let provider = self.places().provider_of(&claim.row).await?;
        let provider_id = claim.row.provider_id.clone().unwrap_or_default();
        let state = provider
            .inspect(&provider_id)
            .await?
            .map(|instance| instance.state);
        // That may have taken long: what follows must not undo what others have done since.
        claim.check_held()?;
        match (claim.row.status, state) {
            (SandboxStatus::Running, Some(SandboxState::Paused)) => {
                provider.resume(&provider_id).await?;
                claim.release().await?;
            }
            (SandboxStatus::Paused, Some(SandboxState::Running)) => {
                match provider.pause(&provider_id).await {
                    // It runs, then, until its time is over.
                    Err(error) if error.kind == ProviderErrorKind::Unsupported => {
                        self.accept_reality(caller, claim, None).await?;
                    }
                    paused => {
                        paused?;
                        claim.release().await?;
                    }
                }
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
        let provider = self.places().provider_of(&row).await?;
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
        self.timers().revive_all(location, long_ago_ms).await?;
        Ok(())
    }

    /// Frees what is kept in memory of sandboxes that another server deleted. Those among `rows` are there.
    async fn forget_deleted(&self, rows: &[Sandbox]) -> ServiceResult<()> {
        let there: HashSet<&SandboxId> = rows.iter().map(|row| &row.id).collect();
        let mut ids = self.command_logs().ids();
        ids.extend(self.agents().keys().cloned());
        ids.retain(|id| !there.contains(id));
        for id in ids {
            let row = self.store().sandbox(&id).await?;
            if row.is_none_or(|row| row.status == SandboxStatus::Deleted) {
                self.command_logs().forget(&id).await;
                self.agents().remove(&id);
            }
        }
        Ok(())
    }
}

/// How long a timer that was given up rests before it gets another chance: what broke may have been mended.
const DEAD_REST_MS: i64 = 3_600_000;
