//! Records the network flows of sandboxes in their history.
//!
//! A sandbox with very many flows must not fill the history: see [`super::flow_quota`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sandyard_core::network::{Denial, Flow, FlowVerdict};
use sandyard_core::{SandboxId, TokenBucket};
use sandyard_provider::Provider;
use sandyard_store::model::NewEvent;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::flow_quota::{SummarySchedule, owner_quota, sandbox_quota};
use crate::request::LogSource;
use crate::service::Service;

/// The kind of the events of allowed and failed flows.
pub(crate) const FLOW: &str = "flow";
/// The kind of the events of denied flows.
pub(crate) const FLOW_DENIED: &str = "flow_denied";

/// Most flows taken from the provider at once.
const BATCH: usize = 256;
/// How often counted flows are checked for a summary.
const COUNT_EVERY: Duration = Duration::from_secs(1);
/// How often followers are notified. Each of them then queries the store.
const NOTIFY_EVERY: Duration = Duration::from_millis(50);
/// How often a provider that has no flows yet is asked again.
const RETRY_EVERY: Duration = Duration::from_secs(5);
/// Most bytes of the reason of a failed flow.
const MAX_FAILURE_BYTES: usize = 300;

/// Records the flows of one provider.
#[derive(Debug)]
pub(crate) struct FlowRecorder {
    service: Service,
    flows: mpsc::Receiver<Flow>,
    sandboxes: HashMap<SandboxId, SandboxFlows>,
    owners: HashMap<String, TokenBucket>,
}

/// The quota of one sandbox, and its flows beyond that.
#[derive(Debug)]
struct SandboxFlows {
    owner: String,
    quota: TokenBucket,
    /// Flows that were not denied, and flows that were.
    surplus: [Surplus; 2],
    schedule: SummarySchedule,
}

/// Flows that are only counted.
#[derive(Debug, Default)]
struct Surplus {
    count: u64,
    sent_bytes: u64,
    received_bytes: u64,
}

impl Service {
    /// Takes over the flows of a provider, which hands them out once; none if it has none, or none yet.
    pub(crate) fn take_flows(&self, provider: &Arc<dyn Provider>) -> Option<FlowRecorder> {
        provider.take_flows().map(|flows| FlowRecorder {
            service: self.clone(),
            flows,
            sandboxes: HashMap::new(),
            owners: HashMap::new(),
        })
    }

    /// Records the flows of one provider's sandboxes, without end. A provider that could not be reached at the start has flows later; some
    /// providers never have any.
    pub(crate) async fn record_flows(
        &self,
        provider: &Arc<dyn Provider>,
        recorder: &mut Option<FlowRecorder>,
    ) {
        loop {
            if let Some(recorder) = recorder {
                recorder.run().await;
            }
            tokio::time::sleep(RETRY_EVERY).await;
            if let Some(next) = self.take_flows(provider) {
                *recorder = Some(next);
            }
        }
    }
}

impl FlowRecorder {
    /// Records flows as they arrive, until the provider ends.
    pub(crate) async fn run(&mut self) {
        let mut ticks = tokio::time::interval(COUNT_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut batch = Vec::with_capacity(BATCH);
        let mut next_notification = Instant::now();
        let mut has_news = false;
        loop {
            tokio::select! {
                count = self.flows.recv_many(&mut batch, BATCH) => {
                    if count == 0 {
                        break;
                    }
                    for flow in batch.drain(..) {
                        self.record(flow);
                    }
                    has_news = true;
                }
                () = tokio::time::sleep_until(next_notification), if has_news => {
                    self.service.changes().notify_waiters();
                    has_news = false;
                    next_notification = Instant::now() + NOTIFY_EVERY;
                }
                _ = ticks.tick(), if !self.sandboxes.is_empty() => self.record_surplus(false),
            }
        }
        self.record_surplus(true);
    }

    /// Records the flows that have arrived, and the counts.
    pub(crate) fn finish(&mut self) {
        while let Ok(flow) = self.flows.try_recv() {
            self.record(flow);
        }
        self.record_surplus(true);
    }

    fn record(&mut self, flow: Flow) {
        let verdict = match flow.verdict {
            FlowVerdict::Allowed => "allowed",
            FlowVerdict::Denied => "denied",
            FlowVerdict::Failed => "failed",
        };
        metrics::counter!("sandyard_flows_total", "verdict" => verdict).increment(flow.count);
        let now = self.service.clock().instant();
        let flows = self
            .sandboxes
            .entry(flow.sandbox_id.clone())
            .or_insert_with(|| SandboxFlows::new(flow.owner.clone(), now));
        let owner = self
            .owners
            .entry(flow.owner.clone())
            .or_insert_with(|| owner_quota(now));
        if !(flows.quota.has_token(now) && owner.has_token(now)) {
            flows.surplus[usize::from(flow.verdict == FlowVerdict::Denied)].add(&flow);
            return;
        }
        flows.quota.try_take(now);
        owner.try_take(now);
        if let Some(denial) = &flow.denial {
            let line = log_line(&flow.sandbox_id, denial);
            let logs = self.service.command_logs();
            logs.add_line(&flow.sandbox_id, flow.at_ms, LogSource::Gateway, &line);
        }
        self.service.history().add_minor(event_of(flow));
    }

    /// Records the counts that are due, or all of them if no more flows come. Forgets sandboxes that have been quiet.
    fn record_surplus(&mut self, is_last: bool) {
        let (now_ms, now) = (
            self.service.clock().now_ms(),
            self.service.clock().instant(),
        );
        let mut has_news = false;
        for (id, flows) in &mut self.sandboxes {
            let has_surplus = flows.has_surplus();
            if !(flows.schedule.is_due(now_ms, has_surplus) || is_last) {
                continue;
            }
            for (is_denied, surplus) in [false, true].into_iter().zip(&mut flows.surplus) {
                let surplus = std::mem::take(surplus);
                if surplus.count == 0 {
                    continue;
                }
                has_news = true;
                if is_denied {
                    let line = format!("network: {} more attempts were denied", surplus.count);
                    let logs = self.service.command_logs();
                    logs.add_line(id, now_ms, LogSource::Gateway, &line);
                }
                let event = surplus.event(id, &flows.owner, is_denied, now_ms);
                self.service.history().add_minor(event);
            }
        }
        self.sandboxes
            .retain(|_, flows| flows.has_surplus() || !flows.quota.is_full(now));
        self.owners.retain(|_, quota| !quota.is_full(now));
        if has_news {
            self.service.changes().notify_waiters();
        }
    }
}

impl SandboxFlows {
    fn new(owner: String, now: std::time::Instant) -> Self {
        Self {
            owner,
            quota: sandbox_quota(now),
            surplus: Default::default(),
            schedule: SummarySchedule::new(),
        }
    }

    fn has_surplus(&self) -> bool {
        self.surplus.iter().any(|surplus| surplus.count > 0)
    }
}

impl Surplus {
    fn add(&mut self, flow: &Flow) {
        self.count = self.count.saturating_add(flow.count);
        self.sent_bytes = self.sent_bytes.saturating_add(flow.sent_bytes);
        self.received_bytes = self.received_bytes.saturating_add(flow.received_bytes);
    }

    fn event(self, id: &SandboxId, owner: &str, is_denied: bool, now_ms: i64) -> NewEvent {
        let verdict = if is_denied { "denied" } else { "allowed" };
        NewEvent {
            sandbox_id: id.clone(),
            owner: owner.to_owned(),
            at_ms: now_ms,
            kind: kind(is_denied).to_owned(),
            actor: ACTOR.to_owned(),
            data: json!({
                "verdict": verdict,
                "count": self.count,
                "sent_bytes": self.sent_bytes,
                "received_bytes": self.received_bytes,
                "reason": "more flows than are recorded one by one",
                "is_summary": true,
            }),
        }
    }
}

/// The actor in events of flows.
const ACTOR: &str = "sandbox";

fn kind(is_denied: bool) -> &'static str {
    if is_denied { FLOW_DENIED } else { FLOW }
}

/// A flow as an event, with the reason of a denial as text.
fn event_of(mut flow: Flow) -> NewEvent {
    if let Some(failure) = &mut flow.failure
        && failure.len() > MAX_FAILURE_BYTES
    {
        failure.truncate(failure.floor_char_boundary(MAX_FAILURE_BYTES));
    }
    let mut data = match serde_json::to_value(&flow) {
        Ok(Value::Object(data)) => data,
        _ => Map::new(),
    };
    data.retain(|name, value| !value.is_null() && name != "sandbox_id" && name != "owner");
    if let Some(denial) = &flow.denial {
        data.insert("reason".to_owned(), denial.to_string().into());
    }
    NewEvent {
        kind: kind(flow.verdict == FlowVerdict::Denied).to_owned(),
        sandbox_id: flow.sandbox_id,
        owner: flow.owner,
        at_ms: flow.at_ms,
        actor: ACTOR.to_owned(),
        data: Value::Object(data),
    }
}

/// A denial as a log line, with the command that allows it if the owner may do so.
fn log_line(id: &SandboxId, denial: &Denial) -> String {
    match denial.advice() {
        Some(target) => format!("network: {denial} (allow: sandyard network allow {id} {target})"),
        None => format!("network: {denial}"),
    }
}
