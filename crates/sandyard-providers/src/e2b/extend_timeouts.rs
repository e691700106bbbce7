//! Keeps running sandboxes from being paused for as long as this server lives.
//!
//! Every sandbox has an end there, at which it is paused. Whoever lists them sees those ends, and puts off the ones that are near.

use std::sync::Arc;

use http::Method;
use sandyard_core::SandboxState;
use sandyard_provider::{ProviderErrorKind, Result, Verb};

use super::api::Api;
use super::convert;
use super::model::{Sandbox, SetTimeout};
use crate::background_batches::BackgroundBatches;
use crate::date::parse_rfc3339_ms;

/// Requests at once.
const AT_ONCE: usize = 8;

/// Sees to it, round by round.
#[derive(Debug, Default)]
pub(super) struct TimeoutExtender(BackgroundBatches);

impl TimeoutExtender {
    /// Puts off the end of those that have less than half of their time left, in the background.
    pub(super) fn put_off(&self, api: &Arc<Api>, sandboxes: &[Sandbox], now_ms: i64) {
        let half_ms = i64::try_from(api.timeout() * 500).unwrap_or(i64::MAX);
        let near = sandboxes.iter().filter(|one| is_near(one, now_ms, half_ms));
        let near: Vec<_> = near.map(|one| one.sandbox_id.clone()).collect();
        let api = Arc::clone(api);
        self.0
            .begin(near, AT_ONCE, move |id| extend(Arc::clone(&api), id));
    }
}

fn is_near(sandbox: &Sandbox, now_ms: i64, half_ms: i64) -> bool {
    let end_ms = sandbox.end_at.as_deref().and_then(parse_rfc3339_ms);
    convert::state(sandbox) == SandboxState::Running
        && end_ms.is_some_and(|end_ms| end_ms.saturating_sub(now_ms) < half_ms)
}

async fn extend(api: Arc<Api>, id: String) -> Result<()> {
    let ask = async || {
        let timeout = api.timeout();
        let path = ["sandboxes", &id, "timeout"];
        api.ask(
            Verb::List,
            Method::POST,
            &path,
            Some(&SetTimeout { timeout }),
        )
        .await
    };
    let mut asked = ask().await;
    if let Err(error) = &asked
        && api.shorten(error)
    {
        asked = ask().await;
    }
    match &asked {
        // Gone or paused meanwhile.
        Err(error) if error.kind == ProviderErrorKind::NotFound => {}
        Err(error) => {
            tracing::warn!(%error, instance = id, "The end of a sandbox at E2B could not be put off");
        }
        Ok(_) => {}
    }
    asked.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_runs_and_is_near_its_end_is_put_off() {
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
