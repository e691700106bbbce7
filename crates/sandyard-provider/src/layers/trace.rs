//! Tells of every call: a line for the log, counts for measurements.
//!
//! Neither ever holds what a call carries: variables, tokens and secrets stay where they are.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::time::Instant;

use super::layered::{Call, Layer, Work};
use crate::provider::Condition;
use crate::{Result, Verb};

/// What a call is said to have ended with that nobody waited for.
const DROPPED: &str = "dropped";

/// Tells of every call.
#[derive(Debug, Default)]
pub(super) struct Trace {
    under_way: AtomicUsize,
}

impl Layer for Trace {
    async fn around<T: Send>(&self, call: &Call<'_>, work: &Work<'_, T>) -> Result<T> {
        let mut telling = Telling::new(self, call);
        let answer = work().await;
        match &answer {
            Ok(_) => telling.outcome = "ok",
            Err(error) => {
                telling.outcome = error.kind.as_str();
                telling.failure = Some(error.message.clone());
            }
        }
        answer
    }

    fn condition(&self, inner: Condition) -> Condition {
        Condition {
            calls: self.under_way.load(Ordering::Relaxed),
            ..inner
        }
    }
}

/// Tells of one call when it ends, however it does.
struct Telling<'a> {
    trace: &'a Trace,
    provider: String,
    verb: Verb,
    subject: String,
    began: Instant,
    outcome: &'static str,
    failure: Option<String>,
}

impl<'a> Telling<'a> {
    fn new(trace: &'a Trace, call: &Call<'_>) -> Self {
        trace.under_way.fetch_add(1, Ordering::Relaxed);
        Self {
            trace,
            provider: call.provider.to_owned(),
            verb: call.verb,
            subject: call.subject.chars().take(100).collect(),
            began: Instant::now(),
            outcome: DROPPED,
            failure: None,
        }
    }
}

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        self.trace.under_way.fetch_sub(1, Ordering::Relaxed);
        let (outcome, verb, took) = (self.outcome, self.verb.as_str(), self.began.elapsed());
        let provider = self.provider.clone();
        metrics::counter!("provider_calls_total", "provider" => provider.clone(), "verb" => verb, "outcome" => outcome)
            .increment(1);
        metrics::histogram!("provider_call_seconds", "provider" => provider, "verb" => verb)
            .record(took.as_secs_f64());
        tracing::debug!(
            provider = self.provider,
            verb,
            subject = self.subject,
            outcome,
            failure = self.failure,
            milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            "a provider was called"
        );
    }
}
