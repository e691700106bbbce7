//! The time, as something that can be handed in: tests own theirs.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Tells the time in milliseconds since 1970.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// The host's.
    #[default]
    System,
    /// A test's.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// A clock that stands at `now_ms` until it is moved.
    pub fn manual(now_ms: i64) -> Self {
        Self::Manual(Arc::new(AtomicI64::new(now_ms)))
    }

    /// The time now.
    pub fn now_ms(&self) -> i64 {
        match self {
            Self::System => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| {
                    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
                }),
            Self::Manual(now) => now.load(Ordering::SeqCst),
        }
    }

    /// Moves a test's clock; the host's goes by itself.
    pub fn advance_ms(&self, by_ms: i64) {
        if let Self::Manual(now) = self {
            now.fetch_add(by_ms, Ordering::SeqCst);
        }
    }
}
