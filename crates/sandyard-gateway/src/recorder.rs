//! Collects flow records for their reader; equal refusals are counted together.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use sandyard_core::SandboxId;
use sandyard_core::network::{Denial, Flow, FlowVerdict, Protocol};
use tokio::sync::mpsc;

use crate::sandbox::{Sandbox, too_many};

/// Maximum number of queued records; more are dropped and counted.
const QUEUE_LEN: usize = 8192;

/// How long equal refusals are counted before they are reported.
pub(crate) const FLUSH_INTERVAL: Duration = Duration::from_secs(2);

/// Maximum number of different refusals that are counted; above it each refusal is reported on its own.
const MAX_KEYS: usize = 4096;

/// Receives flow records.
#[derive(Debug)]
pub(crate) struct Recorder {
    sender: mpsc::Sender<Flow>,
    repeated: Mutex<HashMap<RefusalKey, Flow>>,
    /// Refusals of sandboxes beyond their rate, one sum per sandbox.
    surplus: Mutex<HashMap<SandboxId, Flow>>,
    dropped: AtomicU64,
}

/// Refusals with the same key are counted together.
#[derive(Debug, PartialEq, Eq)]
struct RefusalKey {
    sandbox: String,
    protocol: Protocol,
    name: Option<String>,
    address: Option<IpAddr>,
    port: Option<u16>,
    /// The whole denial: requests for several hosts on connections to one are reported separately.
    denial: Option<Denial>,
}

impl Hash for RefusalKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.sandbox.hash(state);
        self.name.hash(state);
        self.address.hash(state);
        self.port.hash(state);
    }
}

impl Recorder {
    /// Creates a recorder and the receiver of its records.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Flow>) {
        let (sender, receiver) = mpsc::channel(QUEUE_LEN);
        let recorder = Self {
            sender,
            repeated: Mutex::default(),
            surplus: Mutex::default(),
            dropped: AtomicU64::new(0),
        };
        (recorder, receiver)
    }

    /// Records a flow. The first refusal with a key is reported immediately, the following ones with the next
    /// [`Recorder::flush`].
    ///
    /// Each sandbox has a rate of refusals, so that none can displace the records of others, or its own.
    pub(crate) fn record(&self, sandbox: &Sandbox, flow: Flow) {
        if flow.verdict == FlowVerdict::Allowed {
            return self.send(flow);
        }
        let key = RefusalKey {
            sandbox: flow.sandbox_id.to_string(),
            protocol: flow.protocol,
            name: flow.name.clone(),
            address: flow.address,
            port: flow.port,
            denial: flow.denial.clone(),
        };
        {
            let mut repeated = self.repeated.lock();
            if let Some(sum) = repeated.get_mut(&key) {
                sum.count += flow.count;
                sum.sent_bytes += flow.sent_bytes;
                sum.received_bytes += flow.received_bytes;
                sum.at_ms = flow.at_ms;
                return;
            }
            if !sandbox.may_record() {
                return self.count_surplus(flow);
            }
            if repeated.len() < MAX_KEYS {
                let none = Flow {
                    count: 0,
                    sent_bytes: 0,
                    received_bytes: 0,
                    ..flow.clone()
                };
                repeated.insert(key, none);
            }
        }
        self.send(flow);
    }

    /// Reports what was counted since the last call. Called every [`FLUSH_INTERVAL`].
    pub(crate) fn flush(&self) {
        let counted = {
            let mut repeated = self.repeated.lock();
            std::mem::take(&mut *repeated)
        };
        let surplus = {
            let mut surplus = self.surplus.lock();
            std::mem::take(&mut *surplus)
        };
        let counted = counted.into_values().filter(|flow| flow.count > 0);
        for flow in counted.chain(surplus.into_values()) {
            self.send(flow);
        }
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            tracing::warn!(
                dropped,
                "Dropped flow records: they arrived faster than they were read"
            );
        }
    }

    fn count_surplus(&self, flow: Flow) {
        let mut surplus = self.surplus.lock();
        let count = flow.count;
        let sum = surplus
            .entry(flow.sandbox_id.clone())
            .or_insert_with(|| Flow {
                name: None,
                address: None,
                port: None,
                denial: Some(too_many("refusals that are recorded one by one".to_owned())),
                count: 0,
                ..flow
            });
        sum.count += count;
    }

    fn send(&self, flow: Flow) {
        if self.sender.try_send(flow).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sandyard_core::network::{NetworkGrant, NetworkPolicy};
    use tokio::sync::Semaphore;

    use super::*;
    use crate::settings::FlowLimits;

    fn sandbox() -> Sandbox {
        let grant = NetworkGrant {
            sandbox_id: "abc".parse().unwrap(),
            owner: "me".into(),
            policy: NetworkPolicy::default(),
            secrets: Vec::new(),
            is_leading: true,
        };
        Sandbox::new(grant, FlowLimits::default(), Arc::new(Semaphore::new(1)))
    }

    fn refusal(name: &str) -> Flow {
        Flow {
            sandbox_id: "abc".parse().unwrap(),
            owner: "me".into(),
            at_ms: 0,
            duration_ms: 0,
            protocol: Protocol::Dns,
            name: Some(name.into()),
            address: None,
            port: None,
            verdict: FlowVerdict::Denied,
            denial: Some(Denial::NotAllowed {
                target: name.into(),
            }),
            failure: None,
            sent_bytes: 0,
            received_bytes: 0,
            count: 1,
        }
    }

    #[test]
    fn a_storm_of_refusals_alike_is_two_records() {
        let (recorder, mut records) = Recorder::new();
        let sandbox = sandbox();
        for _ in 0..1000 {
            recorder.record(&sandbox, refusal("a.test"));
        }
        recorder.record(&sandbox, refusal("b.test"));
        recorder.flush();
        recorder.flush();
        let mut flows = Vec::new();
        while let Ok(flow) = records.try_recv() {
            flows.push((flow.name.unwrap(), flow.count));
        }
        flows.sort();
        assert_eq!(
            flows,
            [
                ("a.test".to_owned(), 1),
                ("a.test".to_owned(), 999),
                ("b.test".to_owned(), 1)
            ]
        );
    }

    #[test]
    fn denials_with_different_names_are_recorded_separately() {
        let (recorder, mut records) = Recorder::new();
        let sandbox = sandbox();
        for requested in ["a.test", "b.test", "a.test"] {
            recorder.record(
                &sandbox,
                Flow {
                    denial: Some(Denial::NameMismatch {
                        name: "good.test".into(),
                        requested: requested.into(),
                    }),
                    ..refusal("good.test")
                },
            );
        }
        let flows: Vec<_> = std::iter::from_fn(|| records.try_recv().ok()).collect();
        let denials: Vec<_> = flows.iter().map(|flow| flow.denial.as_ref()).collect();
        assert_eq!(denials.len(), 2);
        assert_ne!(denials[0], denials[1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_different_refusals_is_cut_to_a_share_and_counted() {
        let (recorder, mut records) = Recorder::new();
        let (noisy, other) = (sandbox(), sandbox());
        for number in 0..20_000 {
            recorder.record(&noisy, refusal(&format!("{number}.test")));
        }
        let flow = Flow {
            sandbox_id: "quiet".parse().unwrap(),
            ..refusal("a.test")
        };
        recorder.record(&other, flow);
        recorder.flush();
        let flows: Vec<_> = std::iter::from_fn(|| records.try_recv().ok()).collect();
        assert_eq!(flows.iter().map(|flow| flow.count).sum::<u64>(), 20_001);
        assert_eq!(flows.len(), 1000 + 1 + 1);
        assert!(flows.iter().any(|flow| flow.sandbox_id.as_str() == "quiet"));
    }
}
