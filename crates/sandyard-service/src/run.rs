//! What goes on in the background.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use sandyard_core::ErrorKind;
use sandyard_provider::{Provider, Ready};

use crate::claim::millis;
use crate::error::{ServiceError, ServiceResult};
use crate::flows::FlowTaker;
use crate::service::Service;

/// How often activity and commands are written down.
const FLUSH_EVERY: Duration = Duration::from_secs(1);
/// How often a node says that it is there.
const BEAT_EVERY: Duration = Duration::from_secs(2);
/// How long work that was begun has at the end.
const END_WITHIN: Duration = Duration::from_secs(20);
/// How long taking ready sandboxes back may take. It goes on after that: all that matters is that the wish was heard.
const UNREADY_WITHIN: Duration = Duration::from_secs(15);
/// How long a provider has to end what it does for its sandboxes.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);
/// How often every provider is asked whether it answers.
const CHECK_EVERY: Duration = Duration::from_secs(10);
/// How long asking for ready sandboxes may take.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// How often ready sandboxes are asked for.
const READY_EVERY: Duration = Duration::from_secs(20);
/// How often to look whether commands have lost the server that followed them.
const ADOPT_EVERY: Duration = Duration::from_secs(2);
/// How often logs are held to their bound.
const LOGS_EVERY: Duration = Duration::from_secs(60);
/// How often old history is forgotten.
const PURGE_EVERY: Duration = Duration::from_secs(3600);

impl Service {
    /// Runs timers and reconcilers until `stop` ends. The first round of each comes before anything waits.
    pub async fn run(&self, stop: impl Future<Output = ()> + Send) {
        let local = self.places().local();
        let mut flows: Vec<Option<FlowTaker>> = local
            .iter()
            .map(|provider| self.take_flows(provider))
            .collect();
        {
            let places = local.iter().zip(&mut flows);
            let places = places.map(|(provider, flows)| self.run_place(provider, flows));
            tokio::select! {
                () = stop => {}
                _ = join_all(places) => {}
                () = every(FLUSH_EVERY, || self.flush()) => {}
                () = every(BEAT_EVERY, || self.say_there()) => {}
                () = every(BEAT_EVERY, || self.look_around()) => {}
                () = every(BEAT_EVERY, || self.watch_clock()) => {}
                () = every(PURGE_EVERY, || self.purge()) => {}
                () = every(LOGS_EVERY, || self.bound_logs()) => {}
            }
        }
        // What was begun is finished first: its claims end with this node.
        self.tasks().close();
        if tokio::time::timeout(END_WITHIN, self.tasks().wait())
            .await
            .is_err()
        {
            tracing::warn!("Some work is left to the next server");
        }
        // What waits for a maker that may never come is not worth its memory. A wish that is not heard ends by itself, later.
        join_all(
            local
                .iter()
                .map(|provider| tokio::time::timeout(UNREADY_WITHIN, provider.keep_ready(&[]))),
        )
        .await;
        join_all(local.iter().map(|provider| {
            // One that does not answer ends with this process, whether it likes it or not.
            tokio::time::timeout(CLOSE_WITHIN, provider.close())
        }))
        .await;
        flows.iter_mut().flatten().for_each(FlowTaker::finish);
        self.flush().await;
        self.command_logs().close().await;
        self.leave().await;
    }

    /// What goes on for one provider. Each has its own of everything: one that hangs holds up no other.
    async fn run_place(&self, provider: &Arc<dyn Provider>, flows: &mut Option<FlowTaker>) {
        let period = self.settings().reconcile_every;
        tokio::join!(
            every(CHECK_EVERY, || self.check_provider(provider)),
            // Not after the reconciler, which may take its time: until then nothing gets out of a sandbox.
            every(period, || self.refresh_grants(provider)),
            self.record_flows(provider, flows),
            self.run_timers(provider),
            every(period, || self.reconcile(provider)),
            every(ADOPT_EVERY, || self.adopt_running(provider)),
            every(READY_EVERY, || self.keep_ready(provider)),
        );
    }

    /// Asks for ready sandboxes. Again and again, since whoever keeps them may have started anew.
    async fn keep_ready(&self, provider: &Arc<dyn Provider>) {
        let wanted = match self.wanted_ready(provider).await {
            Ok(wanted) => wanted,
            Err(error) => {
                tracing::warn!(%error, "No sandboxes are kept ready");
                return;
            }
        };
        let kept = tokio::time::timeout(READY_WITHIN, provider.keep_ready(&wanted)).await;
        let name = &provider.info().name;
        match kept {
            Ok(Ok(())) => {}
            // Where none are wanted, it does not matter that there can be none.
            _ if wanted.is_empty() => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, provider = name, "No sandboxes are kept ready")
            }
            Err(_) => tracing::warn!(provider = name, "Asking for ready sandboxes took too long"),
        }
    }

    /// What is to be kept ready with a provider: of templates for everybody alone, since what they start runs on nobody's
    /// account.
    async fn wanted_ready(&self, provider: &Arc<dyn Provider>) -> ServiceResult<Vec<Ready>> {
        let mut wanted = Vec::new();
        for ready in &self.settings().ready {
            let (owner, template) = match &ready.template {
                Some(name) => self.ready_template(name)?,
                None => (self.places().default().clone(), None),
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
                wanted.push(Ready {
                    template,
                    count: ready.count,
                });
            }
        }
        Ok(wanted)
    }

    /// Whose a template is that sandboxes are kept ready of, and what it is called there.
    fn ready_template(&self, text: &str) -> ServiceResult<(Arc<dyn Provider>, Option<String>)> {
        match self.provider_in_template(text) {
            Some((name, rest)) => Ok((self.enabled(name)?.clone(), Some(rest.to_owned()))),
            None => Ok((self.provider_of_template(text)?, Some(text.to_owned()))),
        }
    }

    /// One round of all that goes on in the background, now: what was used, dead nodes, rows against reality, due timers.
    pub async fn sweep(&self) -> ServiceResult<()> {
        self.flush().await;
        self.watch_clock().await;
        self.bury_dead_nodes().await?;
        let local = self.places().local().iter();
        let swept = join_all(local.map(|provider| async {
            self.reconcile(provider).await;
            self.refresh_grants(provider).await;
            self.fire_due(provider).await
        }));
        swept.await.into_iter().collect()
    }

    /// Writes down what was used and run since the last time.
    pub async fn flush(&self) {
        let news = self.activity().take_news();
        if !news.is_empty()
            && let Err(error) = self.store().touch_sandboxes(&news).await
        {
            tracing::warn!(%error, "Activity could not be written down yet");
            self.activity().return_news(&news);
        }
        let releases = self.recorders().take_releases();
        if self.history().flush().await {
            self.release_commands(releases);
        } else {
            self.recorders().return_releases(releases);
        }
    }

    async fn say_there(&self) {
        if let Err(error) = self.beat().await {
            tracing::warn!(%error, "This node could not say that it is there");
        }
    }

    /// Apart from the above: looking around must not keep this node from saying that it lives.
    async fn look_around(&self) {
        if let Err(error) = self.bury_dead_nodes().await {
            tracing::warn!(%error, "Other nodes could not be looked at");
        }
    }

    async fn purge(&self) {
        // What a clock that jumped calls old may be of yesterday.
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
            tracing::warn!(%error, "Old history could not be forgotten");
            return;
        }
        if let Err(error) = self.purge_logs().await {
            tracing::warn!(%error, "Logs of forgotten sandboxes could not be removed");
        }
    }

    /// Removes the logs of sandboxes that the store no longer knows.
    async fn purge_logs(&self) -> ServiceResult<()> {
        let failed = |error| {
            ServiceError::new(ErrorKind::Internal, "removing old logs failed").source(error)
        };
        for id in self.command_logs().folders().await.map_err(failed)? {
            if self.store().sandbox(&id).await?.is_none() {
                self.command_logs().remove(&id).await.map_err(failed)?;
            }
        }
        Ok(())
    }

    async fn bound_logs(&self) {
        let kept = self.command_logs().keep_within(self.settings().log_bytes);
        if let Err(error) = kept.await {
            tracing::warn!(%error, "Logs could not be held to their bound");
        }
    }
}

/// Does something now and then again, for ever.
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
