//! Busy loops.

use std::io;
use std::time::{Duration, Instant};

use super::{Exhausted, StoppedBy};

/// Spins on `threads` threads for `seconds` and tells how much processor time that got, in milliseconds.
pub(super) fn spin(threads: u64, seconds: u64) -> io::Result<Exhausted> {
    let end = Instant::now() + Duration::from_secs(seconds);
    let spinners: Vec<_> = (0..threads)
        .map(|_| {
            std::thread::Builder::new()
                .stack_size(64 * 1024)
                .spawn(move || {
                    while Instant::now() < end {
                        std::hint::spin_loop();
                    }
                })
        })
        .collect::<io::Result<_>>()?;
    for spinner in spinners {
        let _ = spinner.join();
    }
    let used = processor_milliseconds();
    Ok(Exhausted {
        reached: used,
        stopped_by: StoppedBy::Time,
        detail: format!("{used} ms of processor time in {seconds} s on {threads} threads"),
    })
}

fn processor_milliseconds() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    u64::try_from(time.tv_sec * 1000 + time.tv_nsec / 1_000_000).unwrap_or(0)
}
