//! The server's process and its host, measured when somebody asks.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::param::page_size;
use rustix::time::{ClockId, clock_gettime};
use sandyard_confine::host::MemoryGauge;

/// The only counter that is not a whole number, which the recorder cannot hold.
pub(super) const CPU: &str = "sandyard_process_cpu_seconds_total";

/// Notes when the process started, and what it is.
pub(super) fn note_start() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    metrics::gauge!("sandyard_process_start_time_seconds")
        .set(now.unwrap_or_default().as_secs_f64());
    metrics::gauge!("sandyard_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
}

/// Measures the process, the memory of the host and the disk with the data directory.
pub(crate) fn note(data_dir: Option<&Path>) {
    if let Some(bytes) = resident_bytes() {
        metrics::gauge!("sandyard_process_resident_memory_bytes").set(bytes as f64);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        // One of them is that of the listing.
        metrics::gauge!("sandyard_process_open_fds").set(open.count().saturating_sub(1) as f64);
    }
    static MEMORY: OnceLock<MemoryGauge> = OnceLock::new();
    if let Some(bytes) = MEMORY.get_or_init(MemoryGauge::open).available() {
        metrics::gauge!("sandyard_memory_available_bytes").set(bytes as f64);
    }
    if let Some((free, size)) = data_dir.and_then(disk_space) {
        metrics::gauge!("sandyard_disk_free_bytes").set(free as f64);
        metrics::gauge!("sandyard_disk_size_bytes").set(size as f64);
    }
}

/// The processor time in the text format of Prometheus.
pub(crate) fn cpu_time() -> String {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = used.tv_sec as f64 + used.tv_nsec as f64 / 1e9;
    let entry = super::families::FAMILIES
        .iter()
        .find(|(name, ..)| *name == CPU);
    let help = entry.map_or("", |(_, _, help)| help);
    format!("# HELP {CPU} {help}\n# TYPE {CPU} counter\n{CPU} {seconds}\n")
}

/// Free bytes and size of the disk with a directory.
pub(crate) fn disk_space(directory: &Path) -> Option<(u64, u64)> {
    let space = rustix::fs::statvfs(directory).ok()?;
    Some((
        space.f_bavail * space.f_frsize,
        space.f_blocks * space.f_frsize,
    ))
}

fn resident_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * page_size() as u64)
}
