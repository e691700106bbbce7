//! The state of one sandbox.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use sandyard_agent_client::Closer;
use sandyard_core::Clock;
use sandyard_core::network::{Denial, Flow, FlowVerdict, NetworkGrant, Protocol};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::limits::Bucket;
use crate::settings::FlowLimits;

/// The size of a burst, in seconds of the rate.
const BURST: f64 = 10.0;

/// Records of refusals: rate per second, and burst.
const RECORDS: (f64, f64) = (100.0, 1000.0);

/// Frames (queries, connections and reports of blocked packets): rate per second, and burst.
const FRAMES: (f64, f64) = (5000.0, 10_000.0);

/// Maximum number of descriptors that wait to be closed; a sandbox that delays closing is not served meanwhile.
pub(crate) const MAX_CLOSING: usize = 2048;

/// The pause between checks of descriptors that are being closed.
const CLOSING_PAUSE: Duration = Duration::from_millis(50);

/// Maximum number of pending queries: as many as an agent sends.
const MAX_QUERIES: usize = 1024;

/// One attached sandbox.
#[derive(Debug)]
pub(crate) struct Sandbox {
    grant: RwLock<Arc<NetworkGrant>>,
    /// Counts changes of the grant; each makes flows check again.
    changes: watch::Sender<u64>,
    /// Slots for connections.
    pub(crate) connections: Arc<Semaphore>,
    /// Slots for connections that it shares with its owner's other sandboxes.
    pub(crate) owner_connections: Arc<Semaphore>,
    /// Slots for queries.
    pub(crate) queries: Arc<Semaphore>,
    pub(crate) limits: FlowLimits,
    opens: Bucket,
    lookups: Bucket,
    records: Bucket,
    frames: Bucket,
    bandwidth: Option<Bucket>,
    /// Closes its descriptors, with one thread per sandbox, so that none takes all threads.
    pub(crate) closer: Arc<Closer>,
    /// Cancelled when the sandbox and all its flows end.
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
            queries: Arc::new(Semaphore::new(MAX_QUERIES)),
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

    /// The current grant.
    pub(crate) fn grant(&self) -> Arc<NetworkGrant> {
        let grant = self.grant.read();
        grant.clone()
    }

    /// Replaces the grant; flows that it no longer allows end.
    pub(crate) fn set_grant(&self, grant: NetworkGrant) {
        *self.grant.write() = Arc::new(grant);
        self.changes.send_modify(|count| *count += 1);
    }

    /// Notified when the grant has changed.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Counts a new connection against the rate.
    pub(crate) fn may_open(&self) -> Result<(), Denial> {
        self.opens.try_take().then_some(()).ok_or_else(|| {
            let rate = self.limits.connections_per_second;
            too_many(format!("{rate} new connections per second"))
        })
    }

    /// Waits until its unused descriptors are closed, so that it cannot accumulate them.
    pub(crate) async fn descriptors_closed(&self) {
        while self.closer.pending() > MAX_CLOSING {
            tokio::time::sleep(CLOSING_PAUSE).await;
        }
    }

    /// Counts a query against the rate.
    pub(crate) fn may_look_up(&self) -> Result<(), Denial> {
        self.lookups.try_take().then_some(()).ok_or_else(|| {
            let rate = self.limits.queries_per_second;
            too_many(format!("{rate} DNS queries per second"))
        })
    }

    /// Counts a record of a refusal against the rate.
    pub(crate) fn may_record(&self) -> bool {
        self.records.try_take()
    }

    /// Counts a frame; returns how long to wait before the next is read.
    pub(crate) fn charge_frame(&self) -> Option<Duration> {
        self.frames.charge(1)
    }

    /// Counts bytes against the bandwidth; returns how long to wait before the next.
    pub(crate) fn charge(&self, bytes: usize) -> Option<Duration> {
        self.bandwidth.as_ref()?.charge(bytes)
    }

    /// Maximum bytes per copy: a tenth of a second's bandwidth, at least 512.
    pub(crate) fn piece_bytes(&self) -> usize {
        let rate = self.limits.bytes_per_second.unwrap_or(u64::MAX);
        usize::try_from(rate / 10).unwrap_or(usize::MAX).max(512)
    }

    /// A new flow record that begins now.
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

/// A denial because of a limit.
pub(crate) fn too_many(limit: String) -> Denial {
    Denial::TooMany { limit }
}

/// Byte counters of one connection.
#[derive(Debug, Default)]
pub(crate) struct ByteCounters {
    /// From the sandbox.
    pub(crate) sent_bytes: AtomicU64,
    /// To the sandbox.
    pub(crate) received_bytes: AtomicU64,
}

impl ByteCounters {
    /// Bytes from the sandbox and to it.
    pub(crate) fn read(&self) -> (u64, u64) {
        let sent_bytes = self.sent_bytes.load(Ordering::Relaxed);
        (sent_bytes, self.received_bytes.load(Ordering::Relaxed))
    }
}
