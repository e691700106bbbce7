//! Records of flows on their way to whoever keeps them; alike ones are counted together.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sandyard_core::SandboxId;
use sandyard_core::network::{Denial, Flow, FlowVerdict, Protocol};
use tokio::sync::mpsc;

use crate::sandbox::{Sandbox, too_many};

/// Records that wait for a slow reader; more are dropped and counted.
const WAITING: usize = 8192;

/// How long refusals alike are counted together before they are told.
pub(crate) const TOGETHER: Duration = Duration::from_secs(2);

/// Kinds of refusals that are counted at once; beyond that each is told by itself.
const MOST_KINDS: usize = 4096;

/// Takes records in.
#[derive(Debug)]
pub(crate) struct Recorder {
    sender: mpsc::Sender<Flow>,
    alike: Mutex<HashMap<Kind, Flow>>,
    /// What sandboxes had too much of to be told of each.
    surplus: Mutex<HashMap<SandboxId, Flow>>,
    dropped: AtomicU64,
}

/// What makes two refusals alike.
#[derive(Debug, PartialEq, Eq)]
struct Kind {
    sandbox: String,
    protocol: Protocol,
    name: Option<String>,
    address: Option<IpAddr>,
    port: Option<u16>,
    /// All of it: whoever asks for many hosts on connections to one is told of each.
    denial: Option<Denial>,
}

impl Hash for Kind {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.sandbox.hash(state);
        self.name.hash(state);
        self.address.hash(state);
        self.port.hash(state);
    }
}

impl Recorder {
    /// A recorder and where its records come out.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Flow>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        let recorder = Self {
            sender,
            alike: Mutex::default(),
            surplus: Mutex::default(),
            dropped: AtomicU64::new(0),
        };
        (recorder, receiver)
    }

    /// Takes a record. The first refusal of a kind is told at once, those that follow soon with the next [`Recorder::flush`].
    ///
    /// Each sandbox has a share of refusals, so that none can drown what others did, or what it did itself.
    pub(crate) fn record(&self, sandbox: &Sandbox, flow: Flow) {
        if flow.verdict == FlowVerdict::Allowed {
            return self.send(flow);
        }
        let kind = Kind {
            sandbox: flow.sandbox_id.to_string(),
            protocol: flow.protocol,
            name: flow.name.clone(),
            address: flow.address,
            port: flow.port,
            denial: flow.denial.clone(),
        };
        {
            let mut alike = self.alike.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = alike.get_mut(&kind) {
                known.count += flow.count;
                known.sent_bytes += flow.sent_bytes;
                known.received_bytes += flow.received_bytes;
                known.at_ms = flow.at_ms;
                return;
            }
            if !sandbox.may_record() {
                return self.count_surplus(flow);
            }
            if alike.len() < MOST_KINDS {
                let none = Flow {
                    count: 0,
                    sent_bytes: 0,
                    received_bytes: 0,
                    ..flow.clone()
                };
                alike.insert(kind, none);
            }
        }
        self.send(flow);
    }

    /// Tells what was counted since the last time. Called every [`TOGETHER`].
    pub(crate) fn flush(&self) {
        let counted = {
            let mut alike = self.alike.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *alike)
        };
        let surplus = {
            let mut surplus = self.surplus.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *surplus)
        };
        let counted = counted.into_values().filter(|flow| flow.count > 0);
        for flow in counted.chain(surplus.into_values()) {
            self.send(flow);
        }
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            tracing::warn!(dropped, "Flow records came faster than they could be kept");
        }
    }

    fn count_surplus(&self, flow: Flow) {
        let mut surplus = self.surplus.lock().unwrap_or_else(PoisonError::into_inner);
        let count = flow.count;
        let sum = surplus
            .entry(flow.sandbox_id.clone())
            .or_insert_with(|| Flow {
                name: None,
                address: None,
                port: None,
                denial: Some(too_many("refusals that are told one by one".to_owned())),
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
        let mut told = Vec::new();
        while let Ok(flow) = records.try_recv() {
            told.push((flow.name.unwrap(), flow.count));
        }
        told.sort();
        assert_eq!(
            told,
            [
                ("a.test".to_owned(), 1),
                ("a.test".to_owned(), 999),
                ("b.test".to_owned(), 1)
            ]
        );
    }

    #[test]
    fn what_was_said_on_connections_to_one_host_is_told_each() {
        let (recorder, mut records) = Recorder::new();
        let sandbox = sandbox();
        for said in ["a.test", "b.test", "a.test"] {
            recorder.record(
                &sandbox,
                Flow {
                    denial: Some(Denial::NameMismatch {
                        name: "good.test".into(),
                        said: said.into(),
                    }),
                    ..refusal("good.test")
                },
            );
        }
        let told: Vec<_> = std::iter::from_fn(|| records.try_recv().ok()).collect();
        let said: Vec<_> = told.iter().map(|flow| flow.denial.as_ref()).collect();
        assert_eq!(said.len(), 2);
        assert_ne!(said[0], said[1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_different_refusals_is_cut_to_a_share_and_counted() {
        let (recorder, mut records) = Recorder::new();
        let (noisy, quiet) = (sandbox(), sandbox());
        for number in 0..20_000 {
            recorder.record(&noisy, refusal(&format!("{number}.test")));
        }
        let calm = Flow {
            sandbox_id: "quiet".parse().unwrap(),
            ..refusal("a.test")
        };
        recorder.record(&quiet, calm);
        recorder.flush();
        let told: Vec<_> = std::iter::from_fn(|| records.try_recv().ok()).collect();
        assert_eq!(told.iter().map(|flow| flow.count).sum::<u64>(), 20_001);
        assert_eq!(told.len(), 1000 + 1 + 1);
        assert!(told.iter().any(|flow| flow.sandbox_id.as_str() == "quiet"));
    }
}
