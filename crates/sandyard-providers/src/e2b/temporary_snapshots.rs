//! Snapshots that exist for a copy only. Each is removed with the call that created it; those of a crash are removed when they are
//! too old to be needed.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sandyard_core::Clock;
use sandyard_provider::{ProviderErrorKind, Result, Verb};
use tokio::runtime::Handle;

use super::api::Api;
use super::model::Snapshot;
use super::snapshot_names::{TEMPORARY, plain_installation};
use super::sources;
use super::templates::remove;

/// Removes its snapshot when dropped, also when the caller gave up.
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
                tracing::warn!(%error, name, "Failed to remove a temporary snapshot at E2B");
            }
        });
    }
}

/// The names of this installation's temporary snapshots.
#[derive(Debug)]
pub(super) struct TemporarySnapshots {
    /// What all of them begin with.
    prefix: String,
    /// The last time that was used in a name: each is used once.
    last_ms: AtomicI64,
    /// After this time no call needs a snapshot any more.
    max_age: Duration,
    /// Time of the last sweep. The first one waits for a while, too.
    last_sweep: Mutex<Instant>,
}

impl TemporarySnapshots {
    /// `copy` is the timeout of copying calls.
    pub(super) fn new(installation: &str, copy: Duration) -> Self {
        Self {
            prefix: format!("{TEMPORARY}{}-", plain_installation(installation)),
            last_ms: AtomicI64::new(0),
            // Saving the files may take that long, and starting from them comes after it.
            max_age: copy * 2,
            last_sweep: Mutex::new(Instant::now()),
        }
    }

    /// A new name, which contains the time.
    pub(super) fn next(&self) -> String {
        let now_ms = Clock::System.now_ms();
        let before = self.last_ms.fetch_max(now_ms, Ordering::Relaxed);
        let at_ms = match now_ms > before {
            true => now_ms,
            false => self.last_ms.fetch_add(1, Ordering::Relaxed) + 1,
        };
        format!("{}{at_ms}-{}", self.prefix, std::process::id())
    }

    /// Whether a snapshot of this installation is no longer needed.
    fn is_leftover(&self, snapshot: &Snapshot, now_ms: i64) -> bool {
        let max_age_ms = i64::try_from(self.max_age.as_millis()).unwrap_or(i64::MAX);
        sources::names(snapshot).iter().any(|name| {
            let rest = name.strip_prefix(&self.prefix);
            let at = rest.and_then(|rest| rest.split('-').next()?.parse::<i64>().ok());
            at.is_some_and(|at_ms| now_ms.saturating_sub(at_ms) > max_age_ms)
        })
    }

    /// Whether a sweep is due; if so, records it.
    fn is_due(&self) -> bool {
        let mut last_sweep = self.last_sweep.lock();
        let is_due = last_sweep.elapsed() >= self.max_age;
        if is_due {
            *last_sweep = Instant::now();
        }
        is_due
    }

    /// Removes leftover snapshots of crashes now and then, in the background. `now_ms` is E2B's time.
    pub(super) fn sweep(self: &Arc<Self>, api: &Arc<Api>, now_ms: i64) {
        if !self.is_due() {
            return;
        }
        let (names, api) = (Arc::clone(self), Arc::clone(api));
        tokio::spawn(async move {
            if let Err(error) = names.remove_leftovers(&api, now_ms).await {
                tracing::warn!(%error, "Failed to list temporary snapshots at E2B");
            }
        });
    }

    async fn remove_leftovers(&self, api: &Api, now_ms: i64) -> Result<()> {
        let answer = api.pages::<Snapshot>(Verb::Templates, &["snapshots"], &[]);
        let answer = answer.await;
        let all = match answer {
            // The API has no snapshots at all.
            Err(error) if error.kind == ProviderErrorKind::NotFound => return Ok(()),
            other => other?.0,
        };
        for snapshot in all
            .iter()
            .filter(|snapshot| self.is_leftover(snapshot, now_ms))
        {
            let name = &snapshot.snapshot_id;
            match remove(api, Verb::RemoveTemplate, snapshot).await {
                Ok(()) => tracing::info!(name, "Removed a leftover temporary snapshot at E2B"),
                Err(error) => {
                    tracing::warn!(%error, name, "Failed to remove a leftover temporary snapshot at E2B")
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
        let full_name = format!("team/{name}:default");
        let json = serde_json::json!({"snapshotID": full_name, "names": [full_name]});
        serde_json::from_value(json).expect("a snapshot")
    }

    #[test]
    fn only_old_snapshots_of_this_installation_are_leftovers() {
        let names = TemporarySnapshots::new("Ours-1", Duration::from_secs(1));
        let is_leftover = |name: &str| names.is_leftover(&snapshot(name), 10_000);
        assert!(is_leftover("sandyard-fork-ours1-7999-12"));
        assert!(!is_leftover("sandyard-fork-ours1-8000-12"), "still needed");
        assert!(!is_leftover("sandyard-fork-theirs-1-12"));
        assert!(!is_leftover("sandyard-fork-ours12-1-12"));
        assert!(!is_leftover("sandyard-fork-ours1-"));
        assert!(!is_leftover("kept"));
    }

    #[test]
    fn names_are_unique_and_new_snapshots_are_not_leftovers() {
        let names = TemporarySnapshots::new("ours", Duration::from_secs(60));
        let unique: std::collections::HashSet<_> = (0..100).map(|_| names.next()).collect();
        assert_eq!(unique.len(), 100);
        let now_ms = Clock::System.now_ms();
        assert!(
            unique
                .iter()
                .all(|name| !names.is_leftover(&snapshot(name), now_ms))
        );
    }

    #[test]
    fn sweeps_are_periodic() {
        assert!(!TemporarySnapshots::new("ours", Duration::from_secs(60)).is_due());
        let immediate = TemporarySnapshots::new("ours", Duration::ZERO);
        assert!(immediate.is_due() && immediate.is_due());
    }
}
