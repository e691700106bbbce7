//! Prevents E2B from pausing running sandboxes while this server runs.
//!
//! Every sandbox at E2B has a time at which it is paused. Lists contain these times, and those that are near are extended.

use std::sync::Arc;

use http::Method;
use sandyard_core::SandboxState;
use sandyard_provider::{ProviderErrorKind, Result, Verb};

use super::api::Api;
use super::convert;
use super::model::{Sandbox, SetTimeout};
use crate::background_batches::BackgroundBatches;
use crate::date::parse_rfc3339_ms;

/// Number of concurrent requests.
const CONCURRENCY: usize = 8;

/// Extends the timeouts of running sandboxes, in batches.
#[derive(Debug, Default)]
pub(super) struct TimeoutExtender(BackgroundBatches);

impl TimeoutExtender {
    /// Extends the timeouts of which less than half remains, in the background.
    pub(super) fn extend(&self, api: &Arc<Api>, sandboxes: &[Sandbox], now_ms: i64) {
        let half_ms = i64::try_from(api.timeout() * 500).unwrap_or(i64::MAX);
        let due = sandboxes
            .iter()
            .filter(|sandbox| is_near(sandbox, now_ms, half_ms));
        let due: Vec<_> = due.map(|sandbox| sandbox.sandbox_id.clone()).collect();
        let api = Arc::clone(api);
        self.0
            .begin(due, CONCURRENCY, move |id| extend_one(Arc::clone(&api), id));
    }
}

fn is_near(sandbox: &Sandbox, now_ms: i64, half_ms: i64) -> bool {
    let end_ms = sandbox.end_at.as_deref().and_then(parse_rfc3339_ms);
    convert::state(sandbox) == SandboxState::Running
        && end_ms.is_some_and(|end_ms| end_ms.saturating_sub(now_ms) < half_ms)
}

async fn extend_one(api: Arc<Api>, id: String) -> Result<()> {
    let path = ["sandboxes", &id, "timeout"];
    let send = |timeout| {
        let (api, body) = (&api, SetTimeout { timeout });
        async move { api.ask(Verb::List, Method::POST, &path, Some(&body)).await }
    };
    let answer = api.with_timeout(send).await;
    // It may have been deleted or paused meanwhile.
    if let Err(error) = &answer
        && error.kind != ProviderErrorKind::NotFound
    {
        tracing::warn!(%error, instance = id, "Failed to extend the timeout of a sandbox at E2B");
    }
    answer.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_running_sandboxes_near_their_end_are_extended() {
        let sandbox = |state: &str, end: &str| -> Sandbox {
            let text = format!(r#"{{"sandboxID":"a","state":"{state}","endAt":"{end}"}}"#);
            serde_json::from_str(&text).expect("a sandbox")
        };
        let near = |state, end| is_near(&sandbox(state, end), 1_000, 5_000);
        assert!(near("running", "1970-01-01T00:00:05.9Z"));
        assert!(near("running", "1970-01-01T00:00:00Z"));
        assert!(!near("running", "1970-01-01T00:00:06Z"));
        assert!(!near("paused", "1970-01-01T00:00:05Z"));
        assert!(!near("running", "some day"));
    }
}
