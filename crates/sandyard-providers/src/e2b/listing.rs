//! Completes the entries of a list.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sandyard_core::SandboxState;
use sandyard_provider::{Instance, Verb};

use super::E2b;
use super::model::Sandbox;

/// Timeout of an inspection: the caller waits for the list.
const INSPECT_TIMEOUT: Duration = Duration::from_secs(5);
/// After this many failures, the other sandboxes are inspected with the next list.
const MAX_FAILURES: usize = 16;

impl E2b {
    /// The instance of a list entry. Lists do not contain what a pause retained, so a sandbox is inspected once per pause. When
    /// that fails, the sandbox counts as paused, without delaying others.
    pub(super) async fn with_pause_mode(
        &self,
        sandbox: Sandbox,
        failures: &AtomicUsize,
    ) -> Option<Instance> {
        self.cache.record(&sandbox);
        let instance = self.instance(&sandbox);
        if sandbox.pause_mode.is_some() || instance.state == SandboxState::Running {
            return Some(instance);
        }
        if let Some(state) = self.cache.pause_state(&sandbox) {
            return Some(Instance { state, ..instance });
        }
        if failures.load(Ordering::Relaxed) >= MAX_FAILURES {
            return Some(instance);
        }
        let inspection = self.find(Verb::List, &sandbox.sandbox_id);
        let error = match tokio::time::timeout(INSPECT_TIMEOUT, inspection).await {
            Ok(Ok(found)) => return found.map(|found| self.instance(&found)),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it took too long".to_owned(),
        };
        failures.fetch_add(1, Ordering::Relaxed);
        let id = sandbox.sandbox_id;
        tracing::warn!(
            instance = id,
            error,
            "E2B does not report whether a sandbox is paused or stopped"
        );
        Some(instance)
    }
}
