//! What sandboxes tried to reach, on its way into their history.
//!
//! A sandbox that tries very often must not fill the history: see [`crate::flow_rows`].

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sandyard_core::SandboxId;
use sandyard_core::network::{Denial, Flow, FlowVerdict};
use sandyard_provider::Provider;
use sandyard_store::model::NewEvent;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::flow_rows::{Allowance, OWNER_ROWS, SANDBOX_ROWS, Summaries};
use crate::request::LogSource;
use crate::service::Service;

/// The kind of an event that tells of something that went out, or failed on its way.
pub(crate) const FLOW: &str = "flow";
/// The kind of an event that tells of something that was denied.
pub(crate) const FLOW_DENIED: &str = "flow_denied";

/// Records taken at once.
const BATCH: usize = 256;
/// How often somebody looks whether to record what was only counted.
const COUNT_EVERY: Duration = Duration::from_secs(1);
/// How often whoever follows is told: each of them asks the store then.
const RING_EVERY: Duration = Duration::from_millis(50);
/// How often a provider that tells of none is asked again.
const ASK_EVERY: Duration = Duration::from_secs(5);
/// Most bytes of why something failed.
const MAX_WORDS: usize = 300;

/// Takes the flows of one provider.
#[derive(Debug)]
pub(crate) struct FlowTaker {
    service: Service,
    flows: mpsc::Receiver<Flow>,
    sandboxes: HashMap<SandboxId, Rows>,
    owners: HashMap<String, Allowance>,
}

/// What one sandbox may still have recorded, and what it had too much.
#[derive(Debug)]
struct Rows {
    owner: String,
    allowance: Allowance,
    /// Not denied, and denied.
    surplus: [Surplus; 2],
    summaries: Summaries,
}

#[derive(Debug, Default)]
struct Surplus {
    count: u64,
    sent_bytes: u64,
    received_bytes: u64,
}

impl Service {
    /// Takes over the flows of a provider, which hands them out once; none: there are none, or not yet.
    pub(crate) fn take_flows(&self, provider: &Arc<dyn Provider>) -> Option<FlowTaker> {
        provider.take_flows().map(|flows| FlowTaker {
            service: self.clone(),
            flows,
            sandboxes: HashMap::new(),
            owners: HashMap::new(),
        })
    }

    /// Records what sandboxes of one provider try to reach, for ever. One that could not be reached at the beginning tells of
    /// flows later, and some never do.
    pub(crate) async fn record_flows(
        &self,
        provider: &Arc<dyn Provider>,
        taker: &mut Option<FlowTaker>,
    ) {
        loop {
            if let Some(taker) = taker {
                taker.run().await;
            }
            tokio::time::sleep(ASK_EVERY).await;
            if let Some(next) = self.take_flows(provider) {
                *taker = Some(next);
            }
        }
    }
}

impl FlowTaker {
    /// Records flows as they come, until there is nobody to tell of any.
    pub(crate) async fn run(&mut self) {
        let mut ticks = tokio::time::interval(COUNT_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut batch = Vec::with_capacity(BATCH);
        let mut next_ring = Instant::now();
        let mut is_unrung = false;
        loop {
            tokio::select! {
                count = self.flows.recv_many(&mut batch, BATCH) => {
                    if count == 0 {
                        break;
                    }
                    for flow in batch.drain(..) {
                        self.record(flow);
                    }
                    is_unrung = true;
                }
                () = tokio::time::sleep_until(next_ring), if is_unrung => {
                    self.service.news().notify_waiters();
                    is_unrung = false;
                    next_ring = Instant::now() + RING_EVERY;
                }
                _ = ticks.tick(), if !self.sandboxes.is_empty() => self.record_surplus(false),
            }
        }
        self.record_surplus(true);
    }

    /// Records what has come by now, and what was only counted.
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
        let now_ms = self.service.clock().now_ms();
        let rows = self
            .sandboxes
            .entry(flow.sandbox_id.clone())
            .or_insert_with(|| Rows::new(flow.owner.clone(), now_ms));
        let owner = self
            .owners
            .entry(flow.owner.clone())
            .or_insert_with(|| Allowance::new(OWNER_ROWS, now_ms));
        if !(rows.allowance.has_one(now_ms) && owner.has_one(now_ms)) {
            rows.surplus[usize::from(flow.verdict == FlowVerdict::Denied)].add(&flow);
            return;
        }
        rows.allowance.take_one();
        owner.take_one();
        if let Some(denial) = &flow.denial {
            let line = log_line(&flow.sandbox_id, denial);
            let logs = self.service.command_logs();
            logs.add_line(&flow.sandbox_id, flow.at_ms, LogSource::Gateway, &line);
        }
        self.service.history().add_minor(event_of(flow));
    }

    /// Records what was only counted, where that is due or nothing more comes, and forgets sandboxes that have been quiet.
    fn record_surplus(&mut self, is_last: bool) {
        let now_ms = self.service.clock().now_ms();
        let mut is_news = false;
        for (id, rows) in &mut self.sandboxes {
            let is_any = rows.has_surplus();
            if !(rows.summaries.is_due(now_ms, is_any) || is_last) {
                continue;
            }
            for (is_denied, surplus) in [false, true].into_iter().zip(&mut rows.surplus) {
                let surplus = std::mem::take(surplus);
                if surplus.count == 0 {
                    continue;
                }
                is_news = true;
                if is_denied {
                    let line = format!("network: {} more attempts were denied", surplus.count);
                    let logs = self.service.command_logs();
                    logs.add_line(id, now_ms, LogSource::Gateway, &line);
                }
                let event = surplus.event(id, &rows.owner, is_denied, now_ms);
                self.service.history().add_minor(event);
            }
        }
        self.sandboxes
            .retain(|_, rows| rows.has_surplus() || !rows.allowance.is_full(now_ms));
        self.owners
            .retain(|_, allowance| !allowance.is_full(now_ms));
        if is_news {
            self.service.news().notify_waiters();
        }
    }
}

impl Rows {
    fn new(owner: String, now_ms: i64) -> Self {
        Self {
            owner,
            allowance: Allowance::new(SANDBOX_ROWS, now_ms),
            surplus: Default::default(),
            summaries: Summaries::new(),
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

/// Who did it, in events.
const ACTOR: &str = "sandbox";

fn kind(is_denied: bool) -> &'static str {
    if is_denied { FLOW_DENIED } else { FLOW }
}

/// A flow as an event: what is known of it, and why it was denied in words.
fn event_of(mut flow: Flow) -> NewEvent {
    if let Some(failure) = &mut flow.failure
        && failure.len() > MAX_WORDS
    {
        failure.truncate(failure.floor_char_boundary(MAX_WORDS));
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

/// A denial as a line for whoever watches the sandbox, with what to do about it where that is up to its owner.
fn log_line(id: &SandboxId, denial: &Denial) -> String {
    match denial.advice() {
        Some(target) => format!("network: {denial} (allow: sandyard network allow {id} {target})"),
        None => format!("network: {denial}"),
    }
}
