//! Describes the host and measures its noise.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use crate::memory;
use crate::report::Host;

/// Describes this machine and the `rivals` on it.
pub(crate) fn describe(rivals: Vec<String>) -> Result<Host> {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").context("failed to read /proc/cpuinfo")?;
    let models: Vec<&str> = cpuinfo
        .lines()
        .filter(|line| line.starts_with("model name"))
        .filter_map(|line| line.split(": ").nth(1))
        .collect();
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(Host {
        kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
            .context("failed to read the kernel release")?
            .trim()
            .to_owned(),
        processors: format!(
            "{count} × {}",
            models.first().unwrap_or(&"unknown processor")
        ),
        memory_mib: memory::total_bytes()? >> 20,
        rivals,
    })
}

/// Measures how long it takes to start a plain `true`. Differences between rounds are noise of the host.
pub(crate) fn spawn_round(count: usize) -> Result<Vec<f64>> {
    (0..count).map(|_| spawn_millis()).collect()
}

fn spawn_millis() -> Result<f64> {
    let start = Instant::now();
    let status = Command::new("true")
        .stdin(Stdio::null())
        .status()
        .context("failed to run `true`")?;
    ensure!(status.success(), "`true` exited with {status}");
    Ok(start.elapsed().as_secs_f64() * 1e3)
}
