//! Reads the usage of containers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bollard::models::ContainerStatsResponse;
use bollard::query_parameters::{InspectContainerOptions, StatsOptions};
use futures_util::StreamExt;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::convert;
use super::daemon::Shared;
use super::error::{DaemonResult, if_exists};
use crate::usage_history::{Meter, Reading};

/// How many containers are read at once.
const CONCURRENCY: usize = 8;
/// Timeout of reading one container.
const READ_TIMEOUT: Duration = Duration::from_secs(4);
/// How old the size of a container's files may be: the daemon walks through all files to compute it.
const SIZE_TTL: Duration = Duration::from_secs(30);
/// Number of concurrent walks, and the timeout of each.
const MAX_WALKS: usize = 2;
const WALK_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a caller waits for a size that is not known yet.
const FIRST_SIZE_TIMEOUT: Duration = Duration::from_secs(2);

/// Recent sizes of containers' files.
#[derive(Clone, Debug)]
pub(super) struct Sizes {
    entries: Arc<Mutex<HashMap<String, SizeEntry>>>,
    walks: Arc<Semaphore>,
}

/// The size of one container's files.
#[derive(Clone, Copy, Debug)]
struct SizeEntry {
    /// When it was last requested, whatever the result.
    requested_at: Instant,
    bytes: Option<u64>,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            entries: Arc::default(),
            walks: Arc::new(Semaphore::new(MAX_WALKS)),
        }
    }
}

impl Sizes {
    fn get(&self, id: &str) -> Option<u64> {
        self.entries.lock().get(id)?.bytes
    }

    /// Whether a size must be requested now; if so, records it. A failed request is not repeated sooner.
    fn is_due(&self, id: &str) -> bool {
        let mut sizes = self.entries.lock();
        let requested_at = Instant::now();
        match sizes.get_mut(id) {
            Some(entry) if entry.requested_at.elapsed() < SIZE_TTL => return false,
            Some(entry) => entry.requested_at = requested_at,
            None => {
                let bytes = None;
                sizes.insert(
                    id.to_owned(),
                    SizeEntry {
                        requested_at,
                        bytes,
                    },
                );
            }
        }
        true
    }

    /// Stores a size, unless the container was forgotten meanwhile.
    fn set_size(&self, id: &str, size: u64) {
        if let Some(entry) = self.entries.lock().get_mut(id) {
            // From now on: a walk may take longer than its result is valid.
            entry.requested_at = Instant::now();
            entry.bytes = Some(size);
        }
    }

    /// Forgets a container.
    pub(super) fn forget(&self, id: &str) {
        self.entries.lock().remove(id);
    }
}

impl Shared {
    /// Current usage of a container; `None` if it does not exist.
    pub(super) async fn stats(&self, id: &str) -> DaemonResult<Option<ContainerStatsResponse>> {
        let options = StatsOptions {
            stream: false,
            one_shot: true,
        };
        let mut responses = Box::pin(self.daemon.stats(id, Some(options)));
        match responses.next().await {
            Some(stats) => if_exists(stats),
            None => Ok(None),
        }
    }

    /// Size of a container's files on top of its image, as recently known; `None` if unknown. Callers do not wait for the daemon's
    /// walk through all files, which may take minutes, except for a moment the first time.
    pub(super) async fn size(self: &Arc<Self>, sizes: &Sizes, id: &str) -> Option<u64> {
        if sizes.is_due(id) {
            let walk = tokio::spawn(self.clone().walk(sizes.clone(), id.to_owned()));
            if sizes.get(id).is_none() {
                // The walk stores its result.
                let _ = tokio::time::timeout(FIRST_SIZE_TIMEOUT, walk).await;
            }
        }
        sizes.get(id)
    }

    async fn walk(self: Arc<Self>, sizes: Sizes, id: String) {
        let Ok(_turn) = sizes.walks.acquire().await else {
            return;
        };
        let options = InspectContainerOptions { size: true };
        let response = self.daemon.inspect_container(&id, Some(options));
        let Ok(response) = tokio::time::timeout(WALK_TIMEOUT, response).await else {
            return;
        };
        let size = response.ok().and_then(|response| response.size_rw);
        if let Some(size) = size.and_then(|size| u64::try_from(size).ok()) {
            sizes.set_size(&id, size);
        }
    }

    async fn reading(self: &Arc<Self>, sizes: &Sizes, id: &str) -> Reading {
        let stats = tokio::time::timeout(READ_TIMEOUT, self.stats(id)).await;
        let stats = match stats {
            Ok(Ok(Some(stats))) => stats,
            Ok(Ok(None)) => return Reading::Exited,
            _ => return Reading::Failed,
        };
        let size = self.size(sizes, id).await.unwrap_or(0);
        convert::counters(&stats, size).map_or(Reading::Exited, Reading::Counters)
    }
}

/// Reads the usage of a daemon's containers.
pub(super) struct DockerMeter {
    pub(super) shared: Arc<Shared>,
    pub(super) sizes: Sizes,
}

#[async_trait]
impl Meter for DockerMeter {
    async fn read(&mut self, ids: &[String], is_all: bool) -> Vec<Reading> {
        if is_all {
            self.sizes.entries.lock().retain(|id, _| ids.contains(id));
        }
        let reads = ids.iter().map(|id| {
            let (shared, sizes, id) = (self.shared.clone(), self.sizes.clone(), id.clone());
            async move { shared.reading(&sizes, &id).await }
        });
        let reads: Vec<_> = reads.collect();
        let reads = futures_util::stream::iter(reads).buffered(CONCURRENCY);
        reads.collect().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_size_request_is_not_repeated_at_once() {
        let sizes = Sizes::default();
        assert!(sizes.is_due("one"));
        assert!(!sizes.is_due("one"), "it failed, or is in progress");
        assert_eq!(sizes.get("one"), None);
        sizes.set_size("one", 7);
        assert_eq!(sizes.get("one"), Some(7));
        sizes.forget("one");
        sizes.set_size("one", 8);
        assert_eq!(sizes.get("one"), None, "it was forgotten");
        assert!(sizes.is_due("one"));
    }
}
