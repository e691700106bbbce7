//! What is known of one sandbox.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use sandyard_agent_client::Closer;
use sandyard_core::Clock;
use sandyard_core::network::{Denial, Flow, FlowVerdict, NetworkGrant, Protocol};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::limits::Bucket;
use crate::settings::FlowLimits;

/// How many times the rate of a second may come at once.
const BURST: f64 = 10.0;

/// Records of refusals a second, and how many may come at once.
const RECORDS: (f64, f64) = (100.0, 1000.0);

/// Frames a second, and how many may come at once: look-ups, connections and reports of strays together.
const FRAMES: (f64, f64) = (5000.0, 10_000.0);

/// Descriptors that wait to be closed; a sandbox that makes that take long is not served meanwhile.
pub(crate) const MAX_CLOSING: usize = 2048;

/// Pause between looks at descriptors that are being closed.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Look-ups under way at once: as many as an agent has.
const QUERIES: usize = 1024;

/// One sandbox with a way out.
#[derive(Debug)]
pub(crate) struct Sandbox {
    grant: RwLock<Arc<NetworkGrant>>,
    /// Counts changes of the grant; flows look again at each.
    changes: watch::Sender<u64>,
    /// Slots for connections.
    pub(crate) connections: Arc<Semaphore>,
    /// Slots for connections that it shares with its owner's other sandboxes.
    pub(crate) owner_connections: Arc<Semaphore>,
    /// Slots for look-ups.
    pub(crate) queries: Arc<Semaphore>,
    pub(crate) limits: FlowLimits,
    opens: Bucket,
    lookups: Bucket,
    records: Bucket,
    frames: Bucket,
    bandwidth: Option<Bucket>,
    /// Closes its descriptors. One thread for each sandbox, so that none takes them all.
    pub(crate) closer: Arc<Closer>,
    /// Its end, and that of all its flows.
    pub(crate) end: CancellationToken,
}

impl Sandbox {
    pub(crate) fn new(
        grant: NetworkGrant,
        limits: FlowLimits,
        owner_connections: Arc<Semaphore>,
    ) -> Self {
        let bucket = |rate: u32| Bucket::new(rate.into(), f64::from(rate) * BURST);
        Self {
            grant: RwLock::new(Arc::new(grant)),
            changes: watch::Sender::new(0),
            connections: Arc::new(Semaphore::new(limits.connections)),
            owner_connections,
            queries: Arc::new(Semaphore::new(QUERIES)),
            opens: bucket(limits.connections_per_second),
            lookups: bucket(limits.queries_per_second),
            records: Bucket::new(RECORDS.0, RECORDS.1),
            frames: Bucket::new(FRAMES.0, FRAMES.1),
            bandwidth: limits
                .bytes_per_second
                .map(|rate| Bucket::new(rate as f64, rate as f64)),
            limits,
            closer: Arc::new(Closer::new(1)),
            end: CancellationToken::new(),
        }
    }

    /// The grant at this moment.
    pub(crate) fn grant(&self) -> Arc<NetworkGrant> {
        let grant = self.grant.read().unwrap_or_else(PoisonError::into_inner);
        grant.clone()
    }

    /// Replaces the grant; flows that it no longer allows end.
    pub(crate) fn set_grant(&self, grant: NetworkGrant) {
        *self.grant.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(grant);
        self.changes.send_modify(|count| *count += 1);
    }

    /// Tells when the grant has changed.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Counts a new connection against the rate.
    pub(crate) fn may_open(&self) -> Result<(), Denial> {
        self.opens.try_take().then_some(()).ok_or_else(|| {
            let rate = self.limits.connections_per_second;
            too_many(format!("{rate} new connections a second"))
        })
    }

    /// Waits until the descriptors it sent for nothing are closed, so that it cannot pile them up.
    pub(crate) async fn descriptors_closed(&self) {
        while self.closer.pending() > MAX_CLOSING {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Counts a look-up against the rate.
    pub(crate) fn may_look_up(&self) -> Result<(), Denial> {
        self.lookups.try_take().then_some(()).ok_or_else(|| {
            let rate = self.limits.queries_per_second;
            too_many(format!("{rate} look-ups a second"))
        })
    }

    /// Counts a record of a refusal against the rate.
    pub(crate) fn may_record(&self) -> bool {
        self.records.try_take()
    }

    /// Counts a frame; says how long to wait before the next is read.
    pub(crate) fn charge_frame(&self) -> Option<Duration> {
        self.frames.charge(1)
    }

    /// Counts bytes against the bandwidth; says how long to wait before the next.
    pub(crate) fn charge(&self, bytes: usize) -> Option<Duration> {
        self.bandwidth.as_ref()?.charge(bytes)
    }

    /// Bytes to move in one go: what a tenth of a second allows, within reason.
    pub(crate) fn piece_bytes(&self) -> usize {
        let rate = self.limits.bytes_per_second.unwrap_or(u64::MAX);
        usize::try_from(rate / 10).unwrap_or(usize::MAX).max(512)
    }

    /// A record that begins now.
    pub(crate) fn flow(&self, protocol: Protocol) -> Flow {
        let grant = self.grant();
        Flow {
            sandbox_id: grant.sandbox_id.clone(),
            owner: grant.owner.clone(),
            at_ms: Clock::System.now_ms(),
            duration_ms: 0,
            protocol,
            name: None,
            address: None,
            port: None,
            verdict: FlowVerdict::Allowed,
            denial: None,
            failure: None,
            sent_bytes: 0,
            received_bytes: 0,
            count: 1,
        }
    }
}

/// Denied for being too much.
pub(crate) fn too_many(limit: String) -> Denial {
    Denial::TooMany { limit }
}

/// Bytes of one connection, counted where they pass.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// From the sandbox.
    pub(crate) sent: AtomicU64,
    /// To the sandbox.
    pub(crate) received: AtomicU64,
}

impl Counted {
    /// Bytes from the sandbox and to it.
    pub(crate) fn read(&self) -> (u64, u64) {
        let sent = self.sent.load(Ordering::Relaxed);
        (sent, self.received.load(Ordering::Relaxed))
    }
}
