//! Records every call in the log and in metrics.
//!
//! Neither holds the arguments of a call: variables, tokens and secrets are not recorded.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use tokio::time::Instant;

use super::layer::{Layer, Request};
use crate::provider::Condition;
use crate::{Answer, Result};

/// The outcome of a call whose future was dropped.
const DROPPED: &str = "dropped";

/// Records every call.
#[derive(Debug, Default)]
pub(super) struct TraceLayer {
    in_progress: AtomicUsize,
}

#[async_trait]
impl Layer for TraceLayer {
    async fn handle(&self, request: &Request<'_>) -> Result<Answer> {
        let mut record = Record::new(self, request);
        let answer = request.send().await;
        match &answer {
            Ok(_) => record.outcome = "ok",
            Err(error) => {
                record.outcome = error.kind.as_str();
                record.failure = Some(error.message.clone());
            }
        }
        answer
    }

    fn condition(&self, inner: Condition) -> Condition {
        Condition {
            calls: self.in_progress.load(Ordering::Relaxed),
            ..inner
        }
    }
}

/// One call, recorded on drop, so that dropped calls are recorded too.
struct Record<'a> {
    layer: &'a TraceLayer,
    provider: String,
    verb: &'static str,
    subject: String,
    started: Instant,
    outcome: &'static str,
    failure: Option<String>,
}

impl<'a> Record<'a> {
    fn new(layer: &'a TraceLayer, request: &Request<'_>) -> Self {
        layer.in_progress.fetch_add(1, Ordering::Relaxed);
        Self {
            layer,
            provider: request.provider().to_owned(),
            verb: request.verb().as_str(),
            subject: request.subject().chars().take(100).collect(),
            started: Instant::now(),
            outcome: DROPPED,
            failure: None,
        }
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        self.layer.in_progress.fetch_sub(1, Ordering::Relaxed);
        let (outcome, verb, duration) = (self.outcome, self.verb, self.started.elapsed());
        let provider = self.provider.clone();
        metrics::counter!("sandyard_provider_calls_total", "provider" => provider.clone(), "verb" => verb, "outcome" => outcome)
            .increment(1);
        metrics::histogram!("sandyard_provider_call_seconds", "provider" => provider, "verb" => verb)
            .record(duration.as_secs_f64());
        tracing::debug!(
            provider = self.provider,
            verb,
            subject = self.subject,
            outcome,
            failure = self.failure,
            duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            "Provider call finished"
        );
    }
}
