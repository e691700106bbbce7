//! Compares what should be with what is, at every provider of this server.
//!
//! [`super::reconcile_table`] decides what happens to a row and its instance. Besides:
//!
//! | found | action |
//! |---|---|
//! | an instance that no row of its location has | see [`super::orphans`] |
//! | a row without a timer | the timer is set |
//! | a volume that is `deleting`, or `creating` for long | the volume is removed |
//! | a grant that this process has not pushed | it is pushed: see [`crate::grants`] |
//!
//! The reconciler leaves rows with a live claim alone: another operation is changing them. Every step may be repeated.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use sandyard_core::clock::millis;
use sandyard_core::{Caller, SandboxId, SandboxState, SandboxStatus};
use sandyard_provider::{Instance, Provider, ProviderErrorKind};
use sandyard_store::SANDBOX_TOPIC;
use sandyard_store::model::{Operation, Sandbox, SandboxFilter, SandboxPatch, TimerPlan};
use serde_json::json;

use super::reconcile_table::{ReconcileAction, decide};
use crate::error::{Result, ServiceError};
use crate::expiry;
use crate::service::Service;
use crate::state::provider_registry::location_of;

/// Most sandboxes reconciled at the same time.
const MAX_CONCURRENT: usize = 8;
/// How long a provider may take to list its instances, which may be many pages.
pub(crate) const LIST_WITHIN: Duration = Duration::from_secs(300);
/// How long one pass over a provider may take.
const PASS_WITHIN: Duration = Duration::from_secs(600);
/// How long a dead timer rests before it is revived: its cause may be gone.
const DEAD_TIMER_REST_MS: i64 = 3_600_000;

impl Service {
    /// Reconciles one of this node's providers, within a time limit.
    pub(crate) async fn reconcile(&self, provider: &Arc<dyn Provider>) {
        let Some(location) = location_of(provider) else {
            return;
        };
        let pass = self.reconcile_location(provider);
        match tokio::time::timeout(PASS_WITHIN, pass).await {
            Ok(Ok(Some(count))) => tracing::debug!(location, count, "Reconciled"),
            Ok(Ok(None)) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, location, "Failed to reconcile; trying again later");
            }
            Err(_) => tracing::warn!(location, "Reconciling took too long; trying again later"),
        }
    }

    /// Reconciles one location. Returns the number of its sandboxes; none if another server reconciles it.
    async fn reconcile_location(&self, provider: &Arc<dyn Provider>) -> Result<Option<usize>> {
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
        // Instances before rows: the row of an instance that is made after this list has a live claim, or is reconciled next time.
        let instances = tokio::time::timeout(LIST_WITHIN, provider.list())
            .await
            .map_err(|_| ServiceError::timed_out("listing instances took too long"))??;
        let rows = self.rows_of(&location).await?;
        let provider_ids: HashMap<&SandboxId, Option<&str>> = rows
            .iter()
            .map(|row| (&row.id, row.provider_id.as_deref()))
            .collect();
        // A sandbox may have an instance besides the one that its row names.
        let is_orphan = |instance: &&Instance| {
            let id = instance.sandbox_id.as_ref();
            match id.and_then(|id| provider_ids.get(id)) {
                None => true,
                Some(None) => false,
                Some(Some(provider_id)) => *provider_id != instance.id,
            }
        };
        let (orphans, own): (Vec<&Instance>, Vec<&Instance>) =
            instances.iter().partition(is_orphan);
        let mut by_sandbox: HashMap<&SandboxId, Vec<&Instance>> = HashMap::new();
        for instance in own {
            if let Some(id) = &instance.sandbox_id {
                by_sandbox.entry(id).or_default().push(instance);
            }
        }
        stream::iter(&rows)
            .for_each_concurrent(MAX_CONCURRENT, |row| async {
                let listed_instances = by_sandbox.get(&row.id).map_or(&[][..], Vec::as_slice);
                if let Err(error) = self.reconcile_row(row, listed_instances).await {
                    tracing::warn!(%error, sandbox.id = %row.id, "Failed to reconcile a sandbox; trying again later");
                }
            })
            .await;
        self.ensure_timers(&location).await?;
        self.finish_interrupted_volumes(&location).await?;
        self.forget_deleted(&rows).await?;
        // Last, because no request waits for them.
        self.reap_orphans(provider, &orphans).await;
        Ok(Some(rows.len()))
    }

    /// All rows of a location.
    pub(crate) async fn rows_of(&self, location: &str) -> Result<Vec<Sandbox>> {
        self.all_rows(SandboxFilter {
            location: Some(location.to_owned()),
            ..SandboxFilter::default()
        })
        .await
    }

    /// All rows that match a filter, over all pages.
    pub(crate) async fn all_rows(&self, mut filter: SandboxFilter) -> Result<Vec<Sandbox>> {
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

    /// Reconciles one row with the instances that were listed for it. There is more than one only before the row names its instance.
    async fn reconcile_row(&self, row: &Sandbox, listed_instances: &[&Instance]) -> Result<()> {
        let now_ms = self.clock().now_ms();
        if row
            .claim
            .as_ref()
            .is_some_and(|(_, _, until)| *until > now_ms)
        {
            return Ok(());
        }
        let caller = Caller::system();
        match decide(
            row.status,
            listed_instances.first().map(|instance| instance.state),
        ) {
            ReconcileAction::None => Ok(()),
            ReconcileAction::FinishCreate => {
                self.finish_listed_create(&row.id, listed_instances).await
            }
            ReconcileAction::FinishDelete => {
                let claim = self.claim(&row.id, Operation::Delete).await?;
                self.delete_listed(&caller, claim, UNFINISHED_DELETE, listed_instances)
                    .await?;
                Ok(())
            }
            _ => self.repair(&caller, &row.id).await.map(drop),
        }
    }

    /// Makes the instance what its row says, where that loses nothing, else the row what the instance is. Returns the status that
    /// the row had.
    pub(crate) async fn repair(&self, caller: &Caller, id: &SandboxId) -> Result<SandboxStatus> {
        let claim = self.claim(id, Operation::Reconcile).await?;
        let status = claim.row.status;
        let provider = self.registry().provider_of(&claim.row).await?;
        let provider_id = claim.row.provider_id.clone().unwrap_or_default();
        let state = provider
            .inspect(&provider_id)
            .await?
            .map(|instance| instance.state);
        // The call may have taken long, and another operation may hold the sandbox now.
        claim.check_held()?;
        match decide(claim.row.status, state) {
            ReconcileAction::Resume => {
                provider.resume(&provider_id).await?;
            }
            ReconcileAction::Pause => match provider.pause(&provider_id).await {
                // Then it runs until its time is over.
                Err(error) if error.kind == ProviderErrorKind::Unsupported => {
                    self.sync_row_from_provider(caller, claim, None).await?;
                    return Ok(status);
                }
                paused => drop(paused?),
            },
            ReconcileAction::Stop => {
                provider.stop(&provider_id).await?;
            }
            ReconcileAction::SyncRow => {
                // That the sandbox is unusable is the result of the check, not a failure of it.
                if let Err(error) = self.sync_row_from_provider(caller, claim, None).await {
                    tracing::warn!(sandbox.id = %id, %error, "Sandbox is unusable");
                }
                return Ok(status);
            }
            ReconcileAction::None
            | ReconcileAction::FinishCreate
            | ReconcileAction::FinishDelete => {}
        }
        claim.release().await?;
        Ok(status)
    }

    /// Finishes a create that a dead server left.
    pub(crate) async fn finish_interrupted_create(&self, row: &Sandbox) -> Result<()> {
        self.finish_listed_create(&row.id, &[]).await
    }

    async fn finish_listed_create(
        &self,
        id: &SandboxId,
        listed_instances: &[&Instance],
    ) -> Result<()> {
        let mut claim = self.claim(id, Operation::Reconcile).await?;
        if claim.row.status != SandboxStatus::Creating {
            claim.release().await?;
            return Ok(());
        }
        let provider = self.registry().provider_of(&claim.row).await?;
        // A list from before the claim shows that an instance is there, but not that it is missing.
        let fresh = match listed_instances {
            [] => provider.list().await?,
            _ => Vec::new(),
        };
        let fresh = fresh.iter();
        let listed_instances: Vec<&Instance> = fresh
            .filter(|instance| instance.sandbox_id.as_ref() == Some(id))
            .chain(listed_instances.iter().copied())
            .collect();
        let caller = Caller::system();
        let running = listed_instances
            .iter()
            .find(|instance| instance.state == SandboxState::Running);
        if let Some(instance) = running {
            self.finish_create(&caller, claim, &provider, Ok((*instance).clone()))
                .await?;
            return Ok(());
        }
        let why = "its server died during the create";
        let event = claim.event("create_failed", &caller, json!({"detail": why}));
        let patch = SandboxPatch {
            status: Some(SandboxStatus::Deleting),
            reason: Some(Some(why.to_owned())),
            ..SandboxPatch::default()
        };
        claim.update(patch, vec![event], TimerPlan::Keep).await?;
        self.delete_listed(&caller, claim, why, &listed_instances)
            .await?;
        Ok(())
    }

    /// Makes sure that every sandbox of a location has a timer, and revives dead timers.
    async fn ensure_timers(&self, location: &str) -> Result<()> {
        for id in self.store().sandboxes_without_timer(location).await? {
            let Some(row) = self.store().sandbox(&id).await? else {
                continue;
            };
            let last_ms = self.last_activity_ms(&row);
            let plan = expiry::plan(&row, last_ms, self.settings().retention);
            if let TimerPlan::Set { due_ms } = plan {
                self.timers()
                    .set(SANDBOX_TOPIC, id.as_str(), location, due_ms)
                    .await?;
            }
        }
        let before_ms = self.clock().now_ms() - DEAD_TIMER_REST_MS;
        self.timers().revive_all(location, before_ms).await?;
        Ok(())
    }

    /// Frees the memory of sandboxes that another server deleted. `rows` are not among them.
    async fn forget_deleted(&self, rows: &[Sandbox]) -> Result<()> {
        let present: HashSet<&SandboxId> = rows.iter().map(|row| &row.id).collect();
        let mut ids = self.command_logs().ids();
        ids.extend(self.agents().keys().cloned());
        ids.retain(|id| !present.contains(id));
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

/// The reason in the event of a delete that a dead server left.
pub(crate) const UNFINISHED_DELETE: &str = "unfinished delete";
