//! Reads what containers use.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bollard::models::ContainerStatsResponse;
use bollard::query_parameters::{InspectContainerOptions, StatsOptions};
use futures_util::StreamExt;
use tokio::sync::Semaphore;

use super::convert;
use super::daemon::Shared;
use super::error::{DaemonResult, if_there};
use crate::usage_history::{Meter, Reading};

/// How many containers are read at once.
const AT_ONCE: usize = 8;
/// How long one may take.
const READ_WITHIN: Duration = Duration::from_secs(4);
/// How old the size of a container's files may be: the daemon walks through all of them for it.
const SIZE_FOR: Duration = Duration::from_secs(30);
/// How many such walks there are at once, and how long each may take.
const WALKS: usize = 2;
const WALKED_WITHIN: Duration = Duration::from_secs(120);
/// How long somebody waits for a size that is not known yet.
const AWAITED_FOR: Duration = Duration::from_secs(2);

/// The sizes of containers' files, as they were of late.
#[derive(Clone, Debug)]
pub(super) struct Sizes {
    known: Arc<Mutex<HashMap<String, LabelValues>>>,
    walks: Arc<Semaphore>,
}

/// What is known of one.
#[derive(Clone, Copy, Debug)]
struct LabelValues {
    /// When it was last asked for, whatever came of that.
    asked: Instant,
    bytes: Option<u64>,
}

impl Default for Sizes {
    fn default() -> Self {
        Self {
            known: Arc::default(),
            walks: Arc::new(Semaphore::new(WALKS)),
        }
    }
}

impl Sizes {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, LabelValues>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, id: &str) -> Option<u64> {
        self.lock().get(id)?.bytes
    }

    /// Says whether a size is to be asked for now, and notes that it is. One that could not be told waits its time too.
    fn is_due(&self, id: &str) -> bool {
        let mut sizes = self.lock();
        let asked = Instant::now();
        match sizes.get_mut(id) {
            Some(known) if known.asked.elapsed() < SIZE_FOR => return false,
            Some(known) => known.asked = asked,
            None => {
                let bytes = None;
                sizes.insert(id.to_owned(), LabelValues { asked, bytes });
            }
        }
        true
    }

    /// Notes a size, unless the container was forgotten meanwhile.
    fn note(&self, id: &str, size: u64) {
        if let Some(known) = self.lock().get_mut(id) {
            // From now on: a walk may take longer than its result is good for.
            known.asked = Instant::now();
            known.bytes = Some(size);
        }
    }

    /// Forgets a container.
    pub(super) fn forget(&self, id: &str) {
        self.lock().remove(id);
    }
}

impl Shared {
    /// What a container uses now; none: it is not there.
    pub(super) async fn stats(&self, id: &str) -> DaemonResult<Option<ContainerStatsResponse>> {
        let options = StatsOptions {
            stream: false,
            one_shot: true,
        };
        let mut told = Box::pin(self.daemon.stats(id, Some(options)));
        match told.next().await {
            Some(stats) => if_there(stats),
            None => Ok(None),
        }
    }

    /// Bytes that a container has on top of its image, as they were of late; none: nobody knows yet. Whoever asks does not wait
    /// for the daemon to walk through all files, which may take minutes, except a moment for the first time.
    pub(super) async fn size(self: &Arc<Self>, sizes: &Sizes, id: &str) -> Option<u64> {
        if sizes.is_due(id) {
            let walk = tokio::spawn(self.clone().walk(sizes.clone(), id.to_owned()));
            if sizes.known(id).is_none() {
                // What comes of it is noted there.
                let _ = tokio::time::timeout(AWAITED_FOR, walk).await;
            }
        }
        sizes.known(id)
    }

    async fn walk(self: Arc<Self>, sizes: Sizes, id: String) {
        let Ok(_turn) = sizes.walks.acquire().await else {
            return;
        };
        let options = InspectContainerOptions { size: true };
        let told = self.daemon.inspect_container(&id, Some(options));
        let Ok(told) = tokio::time::timeout(WALKED_WITHIN, told).await else {
            return;
        };
        let size = told.ok().and_then(|told| told.size_rw);
        if let Some(size) = size.and_then(|size| u64::try_from(size).ok()) {
            sizes.note(&id, size);
        }
    }

    async fn reading(self: &Arc<Self>, sizes: &Sizes, id: &str) -> Reading {
        let stats = tokio::time::timeout(READ_WITHIN, self.stats(id)).await;
        let stats = match stats {
            Ok(Ok(Some(stats))) => stats,
            Ok(Ok(None)) => return Reading::Gone,
            _ => return Reading::Failed,
        };
        let size = self.size(sizes, id).await.unwrap_or(0);
        convert::counters(&stats, size).map_or(Reading::Gone, Reading::Counters)
    }
}

/// Reads what containers of a daemon use.
pub(super) struct DockerMeter {
    pub(super) shared: Arc<Shared>,
    pub(super) sizes: Sizes,
}

#[async_trait]
impl Meter for DockerMeter {
    async fn read(&mut self, ids: &[String], is_all: bool) -> Vec<Reading> {
        if is_all {
            self.sizes.lock().retain(|id, _| ids.contains(id));
        }
        let reads = ids.iter().map(|id| {
            let (shared, sizes, id) = (self.shared.clone(), self.sizes.clone(), id.clone());
            async move { shared.reading(&sizes, &id).await }
        });
        let reads: Vec<_> = reads.collect();
        let reads = futures_util::stream::iter(reads).buffered(AT_ONCE);
        reads.collect().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_cannot_be_told_is_not_asked_for_again_at_once() {
        let sizes = Sizes::default();
        assert!(sizes.is_due("one"));
        assert!(!sizes.is_due("one"), "it failed, or goes on");
        assert_eq!(sizes.known("one"), None);
        sizes.note("one", 7);
        assert_eq!(sizes.known("one"), Some(7));
        sizes.forget("one");
        sizes.note("one", 8);
        assert_eq!(sizes.known("one"), None, "it is gone");
        assert!(sizes.is_due("one"));
    }
}
