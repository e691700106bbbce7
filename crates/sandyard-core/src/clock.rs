//! The time, as something that can be handed in: tests own theirs.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Tells the time in milliseconds since 1970.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The host's.
    #[default]
    System,
    /// A test's.
    Manual(Arc<ManualTime>),
}

/// A test's time: what the wall clock shows, and how much time has really passed.
#[derive(Debug, Default)]
pub struct ManualTime {
    wall_ms: AtomicI64,
    steady_ms: AtomicI64,
}

impl Clock {
    /// A clock that stands at `now_ms` until it is moved.
    pub fn manual(now_ms: i64) -> Self {
        Self::Manual(Arc::new(ManualTime {
            wall_ms: AtomicI64::new(now_ms),
            steady_ms: AtomicI64::new(0),
        }))
    }

    /// The time now, as the wall clock shows it. An administrator or a time server may set it forward or back.
    pub fn now_ms(&self) -> i64 {
        match self {
            Self::System => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| {
                    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
                }),
            Self::Manual(time) => time.wall_ms.load(Ordering::SeqCst),
        }
    }

    /// Milliseconds that have really passed since some moment of this process, however the wall clock was set.
    pub fn steady_ms(&self) -> i64 {
        static BEGAN: OnceLock<Instant> = OnceLock::new();
        match self {
            Self::System => {
                let passed = BEGAN.get_or_init(Instant::now).elapsed().as_millis();
                i64::try_from(passed).unwrap_or(i64::MAX)
            }
            Self::Manual(time) => time.steady_ms.load(Ordering::SeqCst),
        }
    }

    /// Lets time pass on a test's clock; the host's goes by itself.
    pub fn advance_ms(&self, by_ms: i64) {
        if let Self::Manual(time) = self {
            time.wall_ms.fetch_add(by_ms, Ordering::SeqCst);
            time.steady_ms.fetch_add(by_ms, Ordering::SeqCst);
        }
    }

    /// Sets a test's wall clock forward or back, with no time passing.
    pub fn jump_ms(&self, by_ms: i64) {
        if let Self::Manual(time) = self {
            time.wall_ms.fetch_add(by_ms, Ordering::SeqCst);
        }
    }
}
