//! What goes on in the background.

use std::time::Duration;

use futures_util::future::join_all;
use sandyard_provider::Ready;

use crate::claim::millis;
use crate::error::ServiceResult;
use crate::flows::FlowTaker;
use crate::service::Service;

/// How often activity and commands are written down.
const FLUSH_EVERY: Duration = Duration::from_secs(1);
/// How often a node says that it is there.
const BEAT_EVERY: Duration = Duration::from_secs(2);
/// How long work that was begun has at the end.
const END_WITHIN: Duration = Duration::from_secs(20);
/// How long taking ready sandboxes back may take.
const UNREADY_WITHIN: Duration = Duration::from_secs(5);
/// How often ready sandboxes are asked for.
const READY_EVERY: Duration = Duration::from_secs(20);
/// How often old history is forgotten.
const PURGE_EVERY: Duration = Duration::from_secs(3600);

impl Service {
    /// Runs timers and reconcilers until `stop` ends. The first round of each comes before anything waits.
    pub async fn run(&self, stop: impl Future<Output = ()> + Send) {
        let mut flows = self.take_flows();
        tokio::select! {
            () = stop => {}
            // Before the reconciler, which may take its time: until then nothing gets out of a sandbox.
            () = self.every(self.settings().reconcile_every, Self::refresh_grants) => {}
            () = Self::record_flows(&mut flows) => {}
            () = self.run_timers() => {}
            () = self.every(self.settings().reconcile_every, Self::reconcile) => {}
            () = self.every(READY_EVERY, Self::keep_ready) => {}
            () = self.every(FLUSH_EVERY, Self::flush) => {}
            () = self.every(BEAT_EVERY, Self::say_there) => {}
            () = self.every(BEAT_EVERY, Self::look_around) => {}
            () = self.every(PURGE_EVERY, Self::purge) => {}
        }
        // What was begun is finished first: its claims end with this node.
        self.tasks().close();
        if tokio::time::timeout(END_WITHIN, self.tasks().wait())
            .await
            .is_err()
        {
            tracing::warn!("Some work is left to the next server");
        }
        for provider in self.places().local() {
            provider.close().await;
        }
        flows.iter_mut().for_each(FlowTaker::finish);
        self.flush().await;
        self.leave().await;
        // What waits for a maker that may never come is not worth its memory.
        let unready = self.places().default().keep_ready(&[]);
        let _ = tokio::time::timeout(UNREADY_WITHIN, unready).await;
    }

    /// Asks for ready sandboxes. Again and again, since whoever keeps them may have started anew.
    async fn keep_ready(&self) {
        let kept = async {
            let wanted = self.wanted_ready().await?;
            let provider = self.places().default();
            ServiceResult::Ok(provider.keep_ready(&wanted).await?)
        };
        if let Err(error) = kept.await {
            tracing::warn!(%error, "No sandboxes are kept ready");
        }
    }

    /// What is to be kept ready: of templates for everybody alone, since what they start runs on nobody's account.
    async fn wanted_ready(&self) -> ServiceResult<Vec<Ready>> {
        let location = &self.places().default().info().location;
        let mut wanted = Vec::new();
        for ready in &self.settings().ready {
            let owner = match &ready.template {
                Some(name) => self.store().snapshot_owner(location, name).await?,
                None => None,
            };
            if owner.is_none() {
                wanted.push(ready.clone());
            }
        }
        Ok(wanted)
    }

    /// One round of all that goes on in the background, now: what was used, dead nodes, rows against reality, due timers.
    pub async fn sweep(&self) -> ServiceResult<()> {
        self.flush().await;
        self.bury_dead_nodes().await?;
        self.reconcile().await;
        self.refresh_grants().await;
        self.fire_due().await
    }

    /// Records what sandboxes try to reach, for ever.
    async fn record_flows(flows: &mut [FlowTaker]) {
        join_all(flows.iter_mut().map(FlowTaker::run)).await;
        std::future::pending().await
    }

    /// Does something now and then again, for ever.
    async fn every<'a, F>(&'a self, period: Duration, work: impl Fn(&'a Self) -> F)
    where
        F: Future<Output = ()> + 'a,
    {
        let mut ticks = tokio::time::interval(period);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            work(self).await;
        }
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
        self.history().flush().await;
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
        let before_ms = self.clock().now_ms() - millis(self.settings().history);
        let result = async {
            self.store().purge_deleted(before_ms).await?;
            self.store().purge_access(before_ms).await?;
            self.store().purge_history(before_ms).await
        };
        if let Err(error) = result.await {
            tracing::warn!(%error, "Old history could not be forgotten");
        }
    }
}
