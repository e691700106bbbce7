//! The recorder of this process's metrics, the table of their families, and what is measured when somebody asks.

mod families;
pub(crate) mod host;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

/// Upper bounds, in seconds, of the histograms' buckets.
const BUCKETS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
];

/// Requests between two runs of the recorder's upkeep.
const REQUESTS_PER_UPKEEP: u64 = 4096;

/// Installs the recorder, once per process however many servers it has.
pub(crate) fn recorder() -> &'static PrometheusHandle {
    static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();
    RECORDER.get_or_init(|| {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKETS)
            .expect("there are buckets")
            .build_recorder();
        let handle = recorder.handle();
        if metrics::set_global_recorder(recorder).is_err() {
            tracing::warn!(
                "Another metrics recorder is installed in this process; /metrics stays empty"
            );
        }
        families::describe();
        host::note_start();
        handle
    })
}

/// Counts a request, and now and then sorts the measurements into their buckets. Without this, measurements that nobody
/// scrapes would use more and more memory.
pub(crate) fn upkeep() {
    static REQUESTS: AtomicU64 = AtomicU64::new(0);
    let before = REQUESTS.fetch_add(1, Ordering::Relaxed);
    if before.is_multiple_of(REQUESTS_PER_UPKEEP) {
        recorder().run_upkeep();
    }
}
