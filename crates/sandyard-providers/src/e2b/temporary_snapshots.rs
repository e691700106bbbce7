//! Snapshots that are only there for a copy to be made from them. Each goes with the call that made it; what a crash has left goes
//! when it is so old that no call can need it any more.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sandyard_core::Clock;
use sandyard_provider::{ProviderErrorKind, Result, Verb};
use tokio::runtime::Handle;

use super::api::Api;
use super::model::Snapshot;
use super::snapshot_names::{PASSING, plain_installation};
use super::sources;
use super::templates::remove;

/// A snapshot that goes when this does, even if nobody waits any more.
pub(super) struct TemporarySnapshot {
    pub(super) api: Arc<Api>,
    pub(super) snapshot: Option<Snapshot>,
}

impl Drop for TemporarySnapshot {
    fn drop(&mut self) {
        let (Some(snapshot), Ok(runtime)) = (self.snapshot.take(), Handle::try_current()) else {
            return;
        };
        let api = Arc::clone(&self.api);
        runtime.spawn(async move {
            if let Err(error) = remove(&api, Verb::Fork, &snapshot).await {
                let name = snapshot.snapshot_id;
                tracing::warn!(%error, name, "A snapshot at E2B that was only needed for a copy is still there");
            }
        });
    }
}

/// The names of this installation's passing snapshots.
#[derive(Debug)]
pub(super) struct TemporarySnapshots {
    /// What all of them begin with.
    prefix: String,
    /// The last moment that was given to one: no two have the same.
    last_ms: AtomicI64,
    /// After this long nobody needs one.
    most: Duration,
    /// When it was last looked what is left; what there is when this process begins waits for a while.
    swept: Mutex<Instant>,
}

impl TemporarySnapshots {
    /// `copy` is how long making a copy may take.
    pub(super) fn new(installation: &str, copy: Duration) -> Self {
        Self {
            prefix: format!("{PASSING}{}-", plain_installation(installation)),
            last_ms: AtomicI64::new(0),
            // Keeping the files may take that long, and starting from them comes after it.
            most: copy * 2,
            swept: Mutex::new(Instant::now()),
        }
    }

    /// A name that no other has, with the moment in it.
    pub(super) fn next(&self) -> String {
        let now_ms = Clock::System.now_ms();
        let before = self.last_ms.fetch_max(now_ms, Ordering::Relaxed);
        let at_ms = match now_ms > before {
            true => now_ms,
            false => self.last_ms.fetch_add(1, Ordering::Relaxed) + 1,
        };
        format!("{}{at_ms}-{}", self.prefix, std::process::id())
    }

    /// Says whether a snapshot is one of this installation's that nobody needs any more.
    fn is_left(&self, snapshot: &Snapshot, now_ms: i64) -> bool {
        let most_ms = i64::try_from(self.most.as_millis()).unwrap_or(i64::MAX);
        sources::names(snapshot).iter().any(|name| {
            let rest = name.strip_prefix(&self.prefix);
            let at = rest.and_then(|rest| rest.split('-').next()?.parse::<i64>().ok());
            at.is_some_and(|at_ms| now_ms.saturating_sub(at_ms) > most_ms)
        })
    }

    /// Says whether it is time to look, and takes note of it.
    fn is_due(&self) -> bool {
        let mut swept = self.swept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = swept.elapsed() >= self.most;
        if is_due {
            *swept = Instant::now();
        }
        is_due
    }

    /// Removes what a crash has left, now and then, in the background. `now_ms` is what time it is there.
    pub(super) fn sweep(self: &Arc<Self>, api: &Arc<Api>, now_ms: i64) {
        if !self.is_due() {
            return;
        }
        let (names, api) = (Arc::clone(self), Arc::clone(api));
        tokio::spawn(async move {
            if let Err(error) = names.remove_left(&api, now_ms).await {
                tracing::warn!(%error, "Could not look for snapshots at E2B that a copy has left");
            }
        });
    }

    async fn remove_left(&self, api: &Api, now_ms: i64) -> Result<()> {
        let listed = api.pages::<Snapshot>(Verb::Templates, &["snapshots"], &[]);
        let listed = listed.await;
        let all = match listed {
            // Where there are none at all.
            Err(error) if error.kind == ProviderErrorKind::NotFound => return Ok(()),
            other => other?.0,
        };
        for left in all.iter().filter(|one| self.is_left(one, now_ms)) {
            let name = &left.snapshot_id;
            match remove(api, Verb::RemoveTemplate, left).await {
                Ok(()) => tracing::info!(name, "Removed a snapshot at E2B that a copy had left"),
                Err(error) => {
                    tracing::warn!(%error, name, "A snapshot at E2B that a copy has left stays")
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(name: &str) -> Snapshot {
        let full = format!("team/{name}:default");
        let told = serde_json::json!({"snapshotID": full, "names": [full]});
        serde_json::from_value(told).expect("a snapshot")
    }

    #[test]
    fn only_old_ones_of_this_installation_are_left_over() {
        let names = TemporarySnapshots::new("Ours-1", Duration::from_secs(1));
        let is_left = |name: &str| names.is_left(&snapshot(name), 10_000);
        assert!(is_left("sandyard-fork-ours1-7999-12"));
        assert!(!is_left("sandyard-fork-ours1-8000-12"), "still needed");
        assert!(!is_left("sandyard-fork-theirs-1-12"));
        assert!(!is_left("sandyard-fork-ours12-1-12"));
        assert!(!is_left("sandyard-fork-ours1-"));
        assert!(!is_left("kept"));
    }

    #[test]
    fn no_two_have_the_same_name_and_none_is_old() {
        let names = TemporarySnapshots::new("ours", Duration::from_secs(60));
        let made: std::collections::HashSet<_> = (0..100).map(|_| names.next()).collect();
        assert_eq!(made.len(), 100);
        let now_ms = Clock::System.now_ms();
        assert!(
            made.iter()
                .all(|name| !names.is_left(&snapshot(name), now_ms))
        );
    }

    #[test]
    fn it_is_looked_for_now_and_then() {
        assert!(!TemporarySnapshots::new("ours", Duration::from_secs(60)).is_due());
        let hasty = TemporarySnapshots::new("ours", Duration::ZERO);
        assert!(hasty.is_due() && hasty.is_due());
    }
}
