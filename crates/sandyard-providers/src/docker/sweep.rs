//! Takes away what servers that died have left on the daemon: only what carries our labels, only when nobody can be at it any more.
//!
//! | what | when |
//! |---|---|
//! | containers that only copy files | after a while: no copy takes that long |
//! | volumes of `/workspace` | when we deleted their container; a week after it went otherwise: see `workspaces` |
//! | keepers of volumes | when nobody has been at them for long |
//! | images without a name | when no container is of them |
//! | volumes with programs | of other versions, when no container has them; those that were never filled |
//!
//! Containers of sandboxes are left: the service knows which of them are wanted, and is shown all.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bollard::models::ContainerSummary;
use bollard::query_parameters::{ListContainersOptions, ListImagesOptions};
use sandyard_agent_client::Endpoint;
use sandyard_core::Clock;

use super::daemon::Shared;
use super::error::DaemonResult;
use super::labels::{AGENT, HELPER, IMAGE, KEEPER, STOPPED, labelled, said};
use super::link::Links;
use super::program::{FULL, program_volume};
use crate::volume_helper::{ASKED_WITHIN, Activity, Silence, activity};

/// How often, at most, and for whom it is worth it.
const EVERY_MS: i64 = 60_000;
/// How long what is in a volume is kept whose container somebody else removed.
const LOST_FOR: Duration = Duration::from_secs(7 * 24 * 3600);
/// VolumeHelpers that did not answer.
type Silences = Arc<Mutex<HashMap<String, Silence>>>;

/// Sweeps now and then, behind whoever lists.
#[derive(Debug)]
pub(super) struct Sweeper {
    last_ms: Arc<AtomicI64>,
    /// How long what is new is left alone.
    grace_ms: i64,
    /// How long what is in a volume is kept whose container somebody else removed.
    lost_ms: i64,
    silences: Silences,
}

impl Sweeper {
    pub(super) fn new(grace: Duration) -> Self {
        Self {
            last_ms: Arc::new(AtomicI64::new(0)),
            grace_ms: millis(grace),
            lost_ms: millis(LOST_FOR),
            silences: Silences::default(),
        }
    }

    /// Keeps volumes of lost containers for so long.
    pub(super) fn keep_lost(&mut self, keep: Duration) {
        self.lost_ms = millis(keep);
    }

    /// Begins a sweep unless there was one a moment ago. Nobody waits for it.
    pub(super) fn poke(&self, shared: &Arc<Shared>, links: &Links) {
        let now = Clock::System.now_ms();
        let last = self.last_ms.load(Ordering::Relaxed);
        let every = EVERY_MS.min(self.grace_ms);
        if now - last < every {
            return;
        }
        let begun = self
            .last_ms
            .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed);
        if begun.is_err() {
            return;
        }
        let (shared, links) = (shared.clone(), links.clone());
        let (grace_ms, lost_ms) = (self.grace_ms, self.lost_ms);
        let silences = self.silences.clone();
        tokio::spawn(async move {
            let most = shared.config.timeouts.copy;
            let sweep = shared.sweep(&links, &silences, grace_ms, lost_ms);
            match tokio::time::timeout(most, sweep).await {
                Ok(Ok(())) => {}
                Ok(Err(fault)) => tracing::warn!("Failed to sweep Docker: {}", fault.text()),
                Err(_) => tracing::warn!("Sweeping Docker took too long"),
            }
        });
    }
}

impl Shared {
    async fn sweep(
        &self,
        links: &Links,
        silences: &Silences,
        grace_ms: i64,
        lost_ms: i64,
    ) -> DaemonResult {
        let old = Clock::System.now_ms() - grace_ms;
        self.sweep_helpers(old).await?;
        self.sweep_keepers(links, silences, grace_ms).await?;
        let lost = Clock::System.now_ms() - lost_ms;
        self.sweep_workspaces(old, lost).await?;
        self.sweep_images(old).await?;
        self.sweep_programs(old).await
    }

    async fn sweep_helpers(&self, old: i64) -> DaemonResult {
        // The longest copy there may be.
        let longest = i64::try_from(self.config.timeouts.copy.as_millis()).unwrap_or(i64::MAX);
        let old = old.saturating_sub(longest);
        let found = self
            .containers(&[self.ours(), labelled(HELPER, None)])
            .await?;
        let is_helper = |one: &&ContainerSummary| label(one, HELPER).is_some();
        for one in found
            .iter()
            .filter(is_helper)
            .filter(|one| made_ms(one) < old)
        {
            self.sweep_container(one).await;
        }
        Ok(())
    }

    async fn sweep_keepers(
        &self,
        links: &Links,
        silences: &Silences,
        grace_ms: i64,
    ) -> DaemonResult {
        let old = Clock::System.now_ms() - grace_ms;
        let grace = Duration::from_millis(u64::try_from(grace_ms).unwrap_or(0));
        let unused = grace.max(self.config.timeouts.keep * 2);
        let found = self
            .containers(&[self.ours(), labelled(KEEPER, None)])
            .await?;
        let lock = || silences.lock().unwrap_or_else(PoisonError::into_inner);
        let is_there = |id: &String| found.iter().any(|one| one.id.as_ref() == Some(id));
        lock().retain(|id, _| is_there(id));
        let keepers = found.iter().filter(|one| label(one, KEEPER).is_some());
        for one in keepers.filter(|one| made_ms(one) < old) {
            let id = one.id.as_deref().unwrap_or_default();
            // Another server's, perhaps, which lives: then somebody has been at it of late.
            let endpoint = Endpoint::Custom(links.way(id));
            let now = match is_up(one) {
                true => activity(&endpoint, ASKED_WITHIN).await,
                false => Activity::Idle(Duration::MAX),
            };
            let is_left = match now {
                Activity::Busy => false,
                Activity::Idle(idle) => idle >= unused,
                // The daemon may have too much to do to lead to it.
                Activity::Silent => lock().entry(id.to_owned()).or_default().is_long(unused),
            };
            if now != Activity::Silent {
                lock().remove(id);
            }
            if is_left {
                links.forget(id);
                self.sweep_container(one).await;
            }
        }
        Ok(())
    }

    async fn sweep_images(&self, old: i64) -> DaemonResult {
        let ours = labelled(IMAGE, Some(&self.config.installation));
        let filters = [("label", ours), ("dangling", "true".to_owned())];
        let options = ListImagesOptions {
            filters: Some(
                filters
                    .map(|(key, value)| (key.to_owned(), vec![value]))
                    .into(),
            ),
            ..ListImagesOptions::default()
        };
        for image in self.daemon.list_images(Some(options)).await? {
            if image.created.saturating_mul(1000) < old {
                note(&image.id, self.drop_image(&image.id).await);
            }
        }
        Ok(())
    }

    /// Only this installation's: nobody else knows which of theirs they need.
    async fn sweep_programs(&self, old: i64) -> DaemonResult {
        let Some(ours) = self.agent.get() else {
            return Ok(());
        };
        // What is being put into one may take as long as a copy.
        let longest = i64::try_from(self.config.timeouts.copy.as_millis()).unwrap_or(i64::MAX);
        let found = self
            .containers(&[self.ours(), labelled(AGENT, None)])
            .await?;
        for one in found.iter().filter(|one| made_ms(one) < old) {
            let digest = label(one, AGENT);
            let is_full = names(one).iter().any(|name| name.starts_with(FULL));
            let is_wanted = match is_full {
                true => digest.is_none_or(|digest| digest == ours),
                false => digest.is_none() || made_ms(one) >= old.saturating_sub(longest),
            };
            let volume = program_volume(one.mounts.as_deref().unwrap_or_default());
            let (false, Some(volume)) = (is_wanted, volume) else {
                continue;
            };
            let options = ListContainersOptions {
                all: true,
                filters: Some(HashMap::from([("volume".to_owned(), vec![volume.clone()])])),
                ..ListContainersOptions::default()
            };
            let users = self.daemon.list_containers(Some(options)).await?;
            // Whoever holds it for us is one of them.
            if users.iter().all(|user| user.id == one.id) {
                self.sweep_container(one).await;
                note(&volume, self.remove_volume(&volume).await);
            }
        }
        Ok(())
    }

    async fn sweep_container(&self, one: &ContainerSummary) {
        let id = one.id.as_deref().unwrap_or_default();
        note(id, self.remove_container(id).await);
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Tells what became of something that was left.
pub(super) fn note(what: &str, removed: DaemonResult) {
    match removed {
        Ok(()) => tracing::info!(what, "Removed what was left at Docker's"),
        // Somebody uses it after all.
        Err(fault) if fault.status() == Some(409) => {}
        Err(fault) => tracing::warn!(
            what,
            "Failed to remove what was left at Docker's: {}",
            fault.text()
        ),
    }
}

fn label<'a>(one: &'a ContainerSummary, key: &str) -> Option<&'a String> {
    said(one.labels.as_ref()?, key)
}

fn made_ms(one: &ContainerSummary) -> i64 {
    one.created
        .map_or(i64::MAX, |seconds| seconds.saturating_mul(1000))
}

/// Says whether its processes are there.
fn is_up(one: &ContainerSummary) -> bool {
    use bollard::models::ContainerSummaryStateEnum::{CREATED, DEAD, EXITED, REMOVING};
    !matches!(one.state, Some(CREATED | DEAD | EXITED | REMOVING))
}

/// Its names, without what marks it as stopped.
pub(super) fn names(one: &ContainerSummary) -> Vec<String> {
    let plain = |name: &String| {
        let name = name.trim_start_matches('/');
        name.strip_suffix(STOPPED).unwrap_or(name).to_owned()
    };
    one.names.iter().flatten().map(plain).collect()
}
