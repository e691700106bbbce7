//! Rate limits.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// A token bucket. Its users wait for tokens, or are refused.
#[derive(Debug)]
pub(crate) struct Bucket {
    per_second: f64,
    capacity: f64,
    level: Mutex<Level>,
}

#[derive(Debug)]
struct Level {
    tokens: f64,
    at: Instant,
}

impl Bucket {
    /// A full bucket with this rate and capacity.
    pub(crate) fn new(per_second: f64, capacity: f64) -> Self {
        Self {
            per_second,
            capacity,
            level: Mutex::new(Level {
                tokens: capacity,
                at: Instant::now(),
            }),
        }
    }

    /// Takes one token, if there is one.
    pub(crate) fn try_take(&self) -> bool {
        let mut level = self.filled();
        if level.tokens < 1.0 {
            return false;
        }
        level.tokens -= 1.0;
        true
    }

    /// Takes tokens for something already used; the level may become negative. Returns how long to wait before using more.
    pub(crate) fn charge(&self, tokens: usize) -> Option<Duration> {
        let mut level = self.filled();
        level.tokens -= tokens as f64;
        (level.tokens < 0.0).then(|| Duration::from_secs_f64(-level.tokens / self.per_second))
    }

    fn filled(&self) -> std::sync::MutexGuard<'_, Level> {
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let gained = now.duration_since(level.at).as_secs_f64() * self.per_second;
        level.tokens = (level.tokens + gained).min(self.capacity);
        level.at = now;
        level
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_bucket_gives_what_it_holds_and_fills_again() {
        let bucket = Bucket::new(2.0, 3.0);
        assert_eq!((0..5).filter(|_| bucket.try_take()).count(), 3);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!((0..5).filter(|_| bucket.try_take()).count(), 2);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!((0..5).filter(|_| bucket.try_take()).count(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn who_took_too_much_waits_as_long_as_it_takes_to_come_back() {
        let bucket = Bucket::new(1000.0, 1000.0);
        assert_eq!(bucket.charge(1000), None);
        assert_eq!(bucket.charge(500), Some(Duration::from_millis(500)));
        tokio::time::advance(Duration::from_millis(500)).await;
        assert_eq!(bucket.charge(0), None);
    }
}
