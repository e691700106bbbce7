//! The time, passed in as a value so that tests control theirs.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Tells the time in milliseconds since 1970.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The host's clock.
    #[default]
    System,
    /// A test's clock.
    Manual(Arc<ManualTime>),
}

/// A test's time: what the wall clock shows, and how much time has passed.
#[derive(Debug, Default)]
pub struct ManualTime {
    wall_ms: AtomicI64,
    steady_ms: AtomicI64,
}

impl Clock {
    /// A clock that stands at `now_ms` until a test moves it.
    pub fn manual(now_ms: i64) -> Self {
        Self::Manual(Arc::new(ManualTime {
            wall_ms: AtomicI64::new(now_ms),
            steady_ms: AtomicI64::new(0),
        }))
    }

    /// The wall clock's time. An administrator or a time server may set it forward or back.
    pub fn now_ms(&self) -> i64 {
        match self {
            Self::System => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, millis),
            Self::Manual(time) => time.wall_ms.load(Ordering::SeqCst),
        }
    }

    /// Milliseconds since a fixed moment of this process, unaffected by changes of the wall clock.
    pub fn steady_ms(&self) -> i64 {
        match self {
            Self::System => millis(origin().elapsed()),
            Self::Manual(time) => time.steady_ms.load(Ordering::SeqCst),
        }
    }

    /// [`Self::steady_ms`] as an [`Instant`], for code that measures durations.
    pub fn instant(&self) -> Instant {
        match self {
            Self::System => Instant::now(),
            Self::Manual(_) => {
                let passed_ms = u64::try_from(self.steady_ms()).unwrap_or_default();
                origin() + Duration::from_millis(passed_ms)
            }
        }
    }

    /// Lets time pass on a test's clock. Does nothing to the host's clock.
    pub fn advance_ms(&self, by_ms: i64) {
        if let Self::Manual(time) = self {
            time.wall_ms.fetch_add(by_ms, Ordering::SeqCst);
            time.steady_ms.fetch_add(by_ms, Ordering::SeqCst);
        }
    }

    /// Sets a test's wall clock forward or back without letting time pass.
    pub fn jump_ms(&self, by_ms: i64) {
        if let Self::Manual(time) = self {
            time.wall_ms.fetch_add(by_ms, Ordering::SeqCst);
        }
    }
}

/// The moment from which steady time is counted.
fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(Instant::now)
}

/// A duration in whole milliseconds, the type that rows and timers use.
pub fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
