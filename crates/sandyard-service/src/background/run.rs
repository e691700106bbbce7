//! Runs everything that happens in the background.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use sandyard_provider::{Provider, Ready};

use super::flows::FlowRecorder;
use crate::error::{Result, ServiceError};
use crate::service::Service;
use sandyard_core::clock::millis;

/// How often activity and events are saved.
const FLUSH_EVERY: Duration = Duration::from_secs(1);
/// How often a node sends a heartbeat.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(2);
/// How long operations in progress may take at the shutdown.
const FINISH_WITHIN: Duration = Duration::from_secs(20);
/// How long giving up ready sandboxes may take at the shutdown. The provider continues after that.
const UNREADY_WITHIN: Duration = Duration::from_secs(15);
/// How long a provider may take to close.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);
/// How often the health of every provider is checked.
const CHECK_EVERY: Duration = Duration::from_secs(10);
/// How long requesting ready sandboxes may take.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// How often ready sandboxes are requested.
const READY_EVERY: Duration = Duration::from_secs(20);
/// How often to check for commands whose server is dead.
const ADOPT_EVERY: Duration = Duration::from_secs(2);
/// How often the size of the command logs is enforced.
const LOGS_EVERY: Duration = Duration::from_secs(60);
/// How often old history is deleted.
const PURGE_EVERY: Duration = Duration::from_secs(3600);

impl Service {
    /// Runs timers and reconcilers until `stop` completes. Each runs once at the start.
    pub async fn run(&self, stop: impl Future<Output = ()> + Send) {
        let local = self.registry().local();
        let mut flows: Vec<Option<FlowRecorder>> = local
            .iter()
            .map(|provider| self.take_flows(provider))
            .collect();
        {
            let providers = local.iter().zip(&mut flows);
            let providers = providers.map(|(provider, flows)| self.run_provider(provider, flows));
            tokio::select! {
                () = stop => {}
                _ = join_all(providers) => {}
                () = every(FLUSH_EVERY, || self.flush()) => {}
                () = every(HEARTBEAT_EVERY, || self.send_heartbeat()) => {}
                () = every(HEARTBEAT_EVERY, || self.check_peers()) => {}
                () = every(HEARTBEAT_EVERY, || self.check_clock()) => {}
                () = every(PURGE_EVERY, || self.purge()) => {}
                () = every(LOGS_EVERY, || self.enforce_log_quota()) => {}
            }
        }
        // Operations in progress finish first: their claims end with this node.
        self.tasks().close();
        if tokio::time::timeout(FINISH_WITHIN, self.tasks().wait())
            .await
            .is_err()
        {
            tracing::warn!("Some operations did not finish; the next server finishes them");
        }
        // Ready sandboxes are not worth their memory while no server runs. A request that fails expires on its own.
        join_all(
            local
                .iter()
                .map(|provider| tokio::time::timeout(UNREADY_WITHIN, provider.keep_ready(&[]))),
        )
        .await;
        join_all(local.iter().map(|provider| {
            // A provider that does not answer ends with this process.
            tokio::time::timeout(CLOSE_WITHIN, provider.close())
        }))
        .await;
        flows.iter_mut().flatten().for_each(FlowRecorder::finish);
        self.flush().await;
        self.command_logs().close().await;
        self.leave_cluster().await;
    }

    /// Everything in the background for one provider. A provider that hangs delays no other.
    async fn run_provider(&self, provider: &Arc<dyn Provider>, flows: &mut Option<FlowRecorder>) {
        let period = self.settings().reconcile_every;
        tokio::join!(
            every(CHECK_EVERY, || self.check_provider(provider)),
            // Not after the reconciler, which may take long: until its grant is pushed, a sandbox has no network.
            every(period, || self.refresh_grants(provider)),
            self.record_flows(provider, flows),
            self.run_timers(provider),
            every(period, || self.reconcile(provider)),
            every(ADOPT_EVERY, || self.adopt_running(provider)),
            every(READY_EVERY, || self.keep_ready(provider)),
        );
    }

    /// Requests ready sandboxes, periodically, because the provider may have restarted.
    async fn keep_ready(&self, provider: &Arc<dyn Provider>) {
        let targets = match self.ready_targets(provider).await {
            Ok(targets) => targets,
            Err(error) => {
                tracing::warn!(%error, "Failed to determine which sandboxes to keep ready");
                return;
            }
        };
        let wanted: usize = targets.iter().map(|ready| ready.count).sum();
        let name = provider.info().name.clone();
        metrics::gauge!("sandyard_ready_sandboxes_wanted", "provider" => name).set(wanted as f64);
        let requested = tokio::time::timeout(READY_WITHIN, provider.keep_ready(&targets)).await;
        let name = &provider.info().name;
        match requested {
            Ok(Ok(())) => {}
            // If none are wanted, a failure does not matter.
            _ if targets.is_empty() => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, provider = name, "Failed to request ready sandboxes")
            }
            Err(_) => tracing::warn!(provider = name, "Requesting ready sandboxes took too long"),
        }
    }

    /// The sandboxes to keep ready at a provider. Only of templates for everybody, because a ready sandbox has no owner.
    async fn ready_targets(&self, provider: &Arc<dyn Provider>) -> Result<Vec<Ready>> {
        let mut targets = Vec::new();
        for ready in &self.settings().ready {
            let (owner, template) = match &ready.template {
                Some(name) => self.ready_template(name)?,
                None => (self.registry().default().clone(), None),
            };
            if !Arc::ptr_eq(&owner, provider) {
                continue;
            }
            let location = &provider.info().location;
            let snapshot_owner = match &template {
                Some(name) => self.store().snapshot_owner(location, name).await?,
                None => None,
            };
            if snapshot_owner.is_none() {
                targets.push(Ready {
                    template,
                    count: ready.count,
                });
            }
        }
        Ok(targets)
    }

    /// The provider of a template to keep ready, and the template's name there.
    fn ready_template(&self, text: &str) -> Result<(Arc<dyn Provider>, Option<String>)> {
        match self.provider_in_template(text) {
            Some((name, rest)) => Ok((self.enabled_provider(name)?.clone(), Some(rest.to_owned()))),
            None => Ok((self.provider_of_template(text)?, Some(text.to_owned()))),
        }
    }

    /// Runs one background pass now: saves activity, expires dead nodes, reconciles, handles due timers.
    pub async fn sweep(&self) -> Result<()> {
        self.flush().await;
        self.check_clock().await;
        self.expire_dead_nodes().await?;
        let local = self.registry().local().iter();
        let swept = join_all(local.map(|provider| async {
            self.reconcile(provider).await;
            self.refresh_grants(provider).await;
            self.fire_due(provider).await
        }));
        swept.await.into_iter().collect()
    }

    /// Saves activity and events since the last call.
    pub async fn flush(&self) {
        let unsaved = self.activity().take_unsaved();
        if !unsaved.is_empty()
            && let Err(error) = self.store().touch_sandboxes(&unsaved).await
        {
            tracing::warn!(%error, "Failed to save activity; trying again");
            self.activity().restore_unsaved(&unsaved);
        }
        let releases = self.recorders().take_releases();
        if self.history().flush().await {
            self.release_commands(releases);
        } else {
            self.recorders().restore_releases(releases);
        }
    }

    async fn send_heartbeat(&self) {
        if let Err(error) = self.write_heartbeat().await {
            tracing::warn!(%error, "Failed to send the heartbeat of this node");
        }
    }

    /// Separate from the heartbeat, which it must not delay.
    async fn check_peers(&self) {
        if let Err(error) = self.expire_dead_nodes().await {
            tracing::warn!(%error, "Failed to check the heartbeats of other nodes");
        }
    }

    async fn purge(&self) {
        // After a clock jump, what seems old may be of yesterday.
        if !self.may_delete_by_time() {
            return;
        }
        let before_ms = self.clock().now_ms() - millis(self.settings().history);
        let result = async {
            self.store().purge_deleted(before_ms).await?;
            self.store().purge_access(before_ms).await?;
            self.store().purge_history(before_ms).await
        };
        if let Err(error) = result.await {
            tracing::warn!(%error, "Failed to delete old history");
            return;
        }
        if let Err(error) = self.purge_logs().await {
            tracing::warn!(%error, "Failed to remove the logs of deleted sandboxes");
        }
    }

    /// Removes the logs of sandboxes that the store no longer has.
    async fn purge_logs(&self) -> Result<()> {
        let failed =
            |error| ServiceError::internal("failed to remove old command logs").source(error);
        for id in self.command_logs().folders().await.map_err(failed)? {
            if self.store().sandbox(&id).await?.is_none() {
                self.command_logs().remove(&id).await.map_err(failed)?;
            }
        }
        Ok(())
    }

    async fn enforce_log_quota(&self) {
        let enforced = self.command_logs().keep_within(self.settings().log_bytes);
        if let Err(error) = enforced.await {
            tracing::warn!(%error, "Failed to enforce the size of the command logs");
        }
    }
}

/// Runs `work` now and then every `period`, without end.
async fn every<F>(period: Duration, work: impl Fn() -> F)
where
    F: Future<Output = ()>,
{
    let mut ticks = tokio::time::interval(period);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        work().await;
    }
}

#[cfg(test)]
mod tests {
    use sandyard_core::Caller;

    use crate::settings::ServiceSettings;
    use crate::test_service::{create, test_service};

    const HOUR_MS: i64 = 3_600_000;
    const TWO_MONTHS_MS: i64 = 60 * 24 * HOUR_MS;

    #[tokio::test]
    async fn a_clock_jump_forward_holds_the_purge_of_history_back_for_an_hour() {
        let service = test_service(ServiceSettings::default()).await;
        let id = create(&service).await;
        let caller = Caller::system();
        service.delete(&caller, id.as_str()).await.unwrap();
        let is_there = async || service.store().sandbox(&id).await.unwrap().is_some();
        service.clock().jump_ms(TWO_MONTHS_MS);
        service.purge().await;
        assert!(is_there().await, "the clock may be wrong");
        service.clock().jump_ms(-TWO_MONTHS_MS);
        service.purge().await;
        assert!(is_there().await, "it is not old");
        service.clock().jump_ms(TWO_MONTHS_MS);
        service.purge().await;
        service.clock().advance_ms(HOUR_MS);
        service.purge().await;
        assert!(!is_there().await, "the jump has lasted an hour");
    }
}
