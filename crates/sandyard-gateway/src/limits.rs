//! Token buckets that several tasks share.

use std::time::Duration;

use parking_lot::Mutex;
use sandyard_core::TokenBucket;
use tokio::time::Instant;

/// A token bucket behind a lock.
#[derive(Debug)]
pub(crate) struct Bucket(Mutex<TokenBucket>);

impl Bucket {
    /// A full bucket that gains `per_second` tokens a second and holds at most `capacity`.
    pub(crate) fn new(per_second: f64, capacity: f64) -> Self {
        Self(Mutex::new(TokenBucket::new(per_second, capacity, now())))
    }

    /// Takes a token if there is one.
    pub(crate) fn try_take(&self) -> bool {
        self.0.lock().try_take(now())
    }

    /// Takes tokens for what was used already. Returns how long to wait before using more.
    pub(crate) fn charge(&self, tokens: usize) -> Option<Duration> {
        let (mut bucket, now) = (self.0.lock(), now());
        bucket.charge(tokens as f64, now);
        Some(bucket.time_until(0.0, now)).filter(|wait| !wait.is_zero())
    }
}

/// Tokio's clock, which tests can pause.
fn now() -> std::time::Instant {
    Instant::now().into_std()
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
