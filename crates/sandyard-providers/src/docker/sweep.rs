//! Removes what crashed servers left on the daemon: only labelled objects, and only when they can no longer be in use.
//!
//! | object | removed |
//! |---|---|
//! | containers that only copy files | after a while: no copy takes that long |
//! | volumes of `/workspace` | when this server deleted their container; otherwise a week after it disappeared: see `workspaces` |
//! | volume helpers | when they were not used for a while |
//! | images without a name | when no container uses them |
//! | volumes with programs | of other versions, when no container uses them; those that were never filled |
//!
//! Containers of sandboxes are not removed: the service lists all of them and knows which are needed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bollard::models::ContainerSummary;
use bollard::query_parameters::{ListContainersOptions, ListImagesOptions};
use parking_lot::Mutex;
use sandyard_agent_client::Endpoint;
use sandyard_core::Clock;

use super::daemon::Shared;
use super::error::DaemonResult;
use super::labels::{AGENT, COPIER, IMAGE, STOPPED, VOLUME_HELPER, label_value, labelled};
use super::link::Links;
use super::program::{FULL_VOLUME_PREFIX, program_volume};
use crate::volume_helper::{ACTIVITY_TIMEOUT, Activity, Silence, activity};

/// Minimum time between two sweeps.
const INTERVAL_MS: i64 = 60_000;
/// How long the files of a volume are retained whose container someone else removed.
const LOST_RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);
/// Volume helpers that did not answer.
type Silences = Arc<Mutex<HashMap<String, Silence>>>;

/// Sweeps now and then, in the background of lists.
#[derive(Debug)]
pub(super) struct Sweeper {
    last_ms: Arc<AtomicI64>,
    /// How long new objects are ignored.
    grace_ms: i64,
    /// How long the files of a volume are retained whose container someone else removed.
    lost_ms: i64,
    silences: Silences,
}

impl Sweeper {
    pub(super) fn new(grace: Duration) -> Self {
        Self {
            last_ms: Arc::new(AtomicI64::new(0)),
            grace_ms: millis(grace),
            lost_ms: millis(LOST_RETENTION),
            silences: Silences::default(),
        }
    }

    /// Sets how long volumes of lost containers are retained.
    pub(super) fn set_lost_retention(&mut self, retention: Duration) {
        self.lost_ms = millis(retention);
    }

    /// Starts a sweep in the background, unless there was one a moment ago.
    pub(super) fn trigger(&self, shared: &Arc<Shared>, links: &Links) {
        let now = Clock::System.now_ms();
        let last = self.last_ms.load(Ordering::Relaxed);
        let every = INTERVAL_MS.min(self.grace_ms);
        if now - last < every {
            return;
        }
        let swapped =
            self.last_ms
                .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed);
        if swapped.is_err() {
            return;
        }
        let (shared, links) = (shared.clone(), links.clone());
        let (grace_ms, lost_ms) = (self.grace_ms, self.lost_ms);
        let silences = self.silences.clone();
        tokio::spawn(async move {
            let timeout = shared.config.timeouts.copy;
            let sweep = shared.sweep(&links, &silences, grace_ms, lost_ms);
            match tokio::time::timeout(timeout, sweep).await {
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
        let before = Clock::System.now_ms() - grace_ms;
        self.sweep_copiers(before).await?;
        self.sweep_volume_helpers(links, silences, grace_ms).await?;
        let lost = Clock::System.now_ms() - lost_ms;
        self.sweep_workspaces(before, lost).await?;
        self.sweep_images(before).await?;
        self.sweep_programs(before).await
    }

    async fn sweep_copiers(&self, before: i64) -> DaemonResult {
        // No copy takes longer.
        let max_copy_ms = i64::try_from(self.config.timeouts.copy.as_millis()).unwrap_or(i64::MAX);
        let before = before.saturating_sub(max_copy_ms);
        let found = self
            .containers(&[self.installation_label(), labelled(COPIER, None)])
            .await?;
        let is_copier =
            |container: &&ContainerSummary| container_label(container, COPIER).is_some();
        for container in found
            .iter()
            .filter(is_copier)
            .filter(|container| created_ms(container) < before)
        {
            self.sweep_container(container).await;
        }
        Ok(())
    }

    async fn sweep_volume_helpers(
        &self,
        links: &Links,
        silences: &Silences,
        grace_ms: i64,
    ) -> DaemonResult {
        let before = Clock::System.now_ms() - grace_ms;
        let grace = Duration::from_millis(u64::try_from(grace_ms).unwrap_or(0));
        let unused = grace.max(self.config.timeouts.keep * 2);
        let found = self
            .containers(&[self.installation_label(), labelled(VOLUME_HELPER, None)])
            .await?;
        let lock = || silences.lock();
        let is_listed = |id: &String| found.iter().any(|helper| helper.id.as_ref() == Some(id));
        lock().retain(|id, _| is_listed(id));
        let helpers = found
            .iter()
            .filter(|helper| container_label(helper, VOLUME_HELPER).is_some());
        for helper in helpers.filter(|helper| created_ms(helper) < before) {
            let id = helper.id.as_deref().unwrap_or_default();
            // Another running server may use it.
            let endpoint = Endpoint::Custom(links.dialler(id));
            let now = match has_processes(helper) {
                true => activity(&endpoint, ACTIVITY_TIMEOUT).await,
                false => Activity::Idle(Duration::MAX),
            };
            let is_unused = match now {
                Activity::Busy => false,
                Activity::Idle(idle) => idle >= unused,
                // The daemon may be too busy to connect to it.
                Activity::Silent => lock().entry(id.to_owned()).or_default().is_long(unused),
            };
            if now != Activity::Silent {
                lock().remove(id);
            }
            if is_unused {
                links.forget(id);
                self.sweep_container(helper).await;
            }
        }
        Ok(())
    }

    async fn sweep_images(&self, before: i64) -> DaemonResult {
        let own_label = labelled(IMAGE, Some(&self.config.installation));
        let filters = [("label", own_label), ("dangling", "true".to_owned())];
        let options = ListImagesOptions {
            filters: Some(
                filters
                    .map(|(key, value)| (key.to_owned(), vec![value]))
                    .into(),
            ),
            ..ListImagesOptions::default()
        };
        for image in self.daemon.list_images(Some(options)).await? {
            if image.created.saturating_mul(1000) < before {
                log_removal(&image.id, self.remove_unnamed_image(&image.id).await);
            }
        }
        Ok(())
    }

    /// Only programs of this installation: others know which of theirs they need.
    async fn sweep_programs(&self, before: i64) -> DaemonResult {
        let Some(own_digest) = self.agent.get() else {
            return Ok(());
        };
        // An upload may take as long as a copy.
        let max_copy_ms = i64::try_from(self.config.timeouts.copy.as_millis()).unwrap_or(i64::MAX);
        let found = self
            .containers(&[self.installation_label(), labelled(AGENT, None)])
            .await?;
        for holder in found.iter().filter(|holder| created_ms(holder) < before) {
            let digest = container_label(holder, AGENT);
            let is_full = container_names(holder)
                .iter()
                .any(|name| name.starts_with(FULL_VOLUME_PREFIX));
            let is_needed = match is_full {
                true => digest.is_none_or(|digest| digest == own_digest),
                false => {
                    digest.is_none() || created_ms(holder) >= before.saturating_sub(max_copy_ms)
                }
            };
            let volume = program_volume(holder.mounts.as_deref().unwrap_or_default());
            let (false, Some(volume)) = (is_needed, volume) else {
                continue;
            };
            let options = ListContainersOptions {
                all: true,
                filters: Some(HashMap::from([("volume".to_owned(), vec![volume.clone()])])),
                ..ListContainersOptions::default()
            };
            let users = self.daemon.list_containers(Some(options)).await?;
            // The container that keeps the volume is one of them.
            if users.iter().all(|user| user.id == holder.id) {
                self.sweep_container(holder).await;
                log_removal(&volume, self.remove_volume(&volume).await);
            }
        }
        Ok(())
    }

    async fn sweep_container(&self, container: &ContainerSummary) {
        let id = container.id.as_deref().unwrap_or_default();
        log_removal(id, self.remove_container(id).await);
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Logs the result of removing a leftover.
pub(super) fn log_removal(what: &str, removed: DaemonResult) {
    match removed {
        Ok(()) => tracing::info!(what, "Removed a leftover at Docker"),
        // It is in use after all.
        Err(fault) if fault.status() == Some(409) => {}
        Err(fault) => tracing::warn!(
            what,
            "Failed to remove a leftover at Docker: {}",
            fault.text()
        ),
    }
}

fn container_label<'a>(container: &'a ContainerSummary, key: &str) -> Option<&'a String> {
    label_value(container.labels.as_ref()?, key)
}

fn created_ms(container: &ContainerSummary) -> i64 {
    container
        .created
        .map_or(i64::MAX, |seconds| seconds.saturating_mul(1000))
}

/// Whether it has processes.
fn has_processes(container: &ContainerSummary) -> bool {
    use bollard::models::ContainerSummaryStateEnum::{CREATED, DEAD, EXITED, REMOVING};
    !matches!(container.state, Some(CREATED | DEAD | EXITED | REMOVING))
}

/// Its names, without the suffix of stopped containers.
pub(super) fn container_names(container: &ContainerSummary) -> Vec<String> {
    let plain = |name: &String| {
        let name = name.trim_start_matches('/');
        name.strip_suffix(STOPPED).unwrap_or(name).to_owned()
    };
    container.names.iter().flatten().map(plain).collect()
}
