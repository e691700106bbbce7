//! Batches of small background requests to a cloud. One batch runs at a time; it ends early when the cloud rejects requests as too
//! many.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{TryStreamExt, stream};
use parking_lot::Mutex;
use sandyard_provider::{ProviderErrorKind, Result};
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Pause after a rejection that names none.
const DEFAULT_PAUSE: Duration = Duration::from_secs(10);

/// Runs one batch at a time.
#[derive(Debug)]
pub(crate) struct BackgroundBatches {
    permit: Arc<Semaphore>,
    /// No batch starts before this time.
    paused_until: Arc<Mutex<Option<Instant>>>,
}

impl Default for BackgroundBatches {
    fn default() -> Self {
        Self {
            permit: Arc::new(Semaphore::new(1)),
            paused_until: Arc::default(),
        }
    }
}

impl BackgroundBatches {
    /// Sends a request for each id, `concurrency` at once. Does nothing while another batch runs or during a pause. Errors are
    /// reported by `send`; only `NoCapacity` ends the batch.
    pub(crate) fn begin<F>(
        &self,
        ids: Vec<String>,
        concurrency: usize,
        send: impl Fn(String) -> F + Send + 'static,
    ) where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        if ids.is_empty() || self.is_paused() {
            return;
        }
        let Ok(permit) = Arc::clone(&self.permit).try_acquire_owned() else {
            return;
        };
        let paused_until = Arc::clone(&self.paused_until);
        tokio::spawn(async move {
            let _turn = permit;
            let send_one = move |id| {
                let request = send(id);
                async move {
                    match request.await {
                        Err(error) if error.kind == ProviderErrorKind::NoCapacity => Err(error),
                        _ => Ok(()),
                    }
                }
            };
            let batch = stream::iter(ids.into_iter().map(Ok));
            if let Err(error) = batch.try_for_each_concurrent(concurrency, send_one).await {
                let pause = error.retry_after.unwrap_or(DEFAULT_PAUSE);
                let mut paused_until = paused_until.lock();
                *paused_until = Some(Instant::now() + pause);
            }
        });
    }

    fn is_paused(&self) -> bool {
        let paused_until = self.paused_until.lock();
        paused_until.is_some_and(|until| Instant::now() < until)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use sandyard_provider::ProviderError;

    use super::*;

    /// Sends a hundred requests, of which every `nth` fails; returns how many were sent.
    async fn round(batches: &BackgroundBatches, nth: usize, kind: ProviderErrorKind) -> usize {
        let requests = Arc::new(AtomicUsize::new(0));
        let count = requests.clone();
        let ids = (0..100).map(|number| number.to_string()).collect();
        batches.begin(ids, 1, move |_| {
            let is_bad = (count.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(nth);
            async move {
                match is_bad {
                    true => Err(ProviderError::new(kind, "no").retry_after(Duration::from_secs(7))),
                    false => Ok(()),
                }
            }
        });
        // Waits until the batch has ended.
        let _over = batches.permit.acquire().await.expect("never closed");
        requests.load(Ordering::Relaxed)
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejection_pauses_batches_for_the_time_it_names() {
        use ProviderErrorKind::{NoCapacity, Unavailable};
        let batches = BackgroundBatches::default();
        assert_eq!(
            round(&batches, 3, Unavailable).await,
            100,
            "other errors do not end a batch"
        );
        assert_eq!(round(&batches, 3, NoCapacity).await, 3);
        assert_eq!(round(&batches, 3, NoCapacity).await, 0, "paused");
        tokio::time::advance(Duration::from_millis(6900)).await;
        assert_eq!(round(&batches, 3, NoCapacity).await, 0);
        tokio::time::advance(Duration::from_millis(200)).await;
        assert_eq!(round(&batches, 101, NoCapacity).await, 100);
    }

    #[tokio::test]
    async fn one_batch_runs_at_a_time() {
        let batches = BackgroundBatches::default();
        let permit = batches.permit.clone().acquire_owned().await;
        let requests = Arc::new(AtomicUsize::new(0));
        let count = requests.clone();
        batches.begin(vec!["a".to_owned()], 1, move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            async { Ok(()) }
        });
        drop(permit);
        tokio::task::yield_now().await;
        assert_eq!(requests.load(Ordering::Relaxed), 0);
    }
}
