//! What a list does not tell of its sandboxes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sandyard_core::SandboxState;
use sandyard_provider::{Instance, Verb};

use super::E2b;
use super::model::Sandbox;

/// How long such a look may take: a list is waited for.
const LOOKED_WITHIN: Duration = Duration::from_secs(5);
/// After so many that fail the others of a list are looked at the next time.
const MOST_FAILURES: usize = 16;

impl E2b {
    /// One of a list. What it rests as is not in lists, so that is looked at once for each time it rests. One that cannot be looked
    /// at is still there, and holds up no other: it counts as paused until it can, and after some of those nobody else is looked at.
    pub(super) async fn listed(&self, one: Sandbox, failures: &AtomicUsize) -> Option<Instance> {
        self.known.note(&one);
        let instance = self.instance(&one);
        if one.pause_mode.is_some() || instance.state == SandboxState::Running {
            return Some(instance);
        }
        if let Some(state) = self.known.resting(&one) {
            return Some(Instance { state, ..instance });
        }
        if failures.load(Ordering::Relaxed) >= MOST_FAILURES {
            return Some(instance);
        }
        let look = self.look(Verb::List, &one.sandbox_id);
        let error = match tokio::time::timeout(LOOKED_WITHIN, look).await {
            Ok(Ok(found)) => return found.map(|found| self.instance(&found)),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it takes too long".to_owned(),
        };
        failures.fetch_add(1, Ordering::Relaxed);
        let id = one.sandbox_id;
        tracing::warn!(
            instance = id,
            error,
            "E2B does not say whether a sandbox is paused or stopped"
        );
        Some(instance)
    }
}
