//! BackgroundBatches of small requests to a cloud, in the background: one round at a time, over as soon as the other side has had enough.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{TryStreamExt, stream};
use sandyard_provider::{ProviderErrorKind, Result};
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// How long whoever has had enough is left alone, unless it says.
const USUAL_PAUSE: Duration = Duration::from_secs(10);

/// One round at a time.
#[derive(Debug)]
pub(crate) struct BackgroundBatches {
    turn: Arc<Semaphore>,
    /// No round begins before this.
    rest: Arc<Mutex<Option<Instant>>>,
}

impl Default for BackgroundBatches {
    fn default() -> Self {
        Self {
            turn: Arc::new(Semaphore::new(1)),
            rest: Arc::default(),
        }
    }
}

impl BackgroundBatches {
    /// Asks for each of them, so many at once. Does nothing while there is a round, or while the other side is to be left alone: the
    /// next one sees to these. What fails is `ask`'s to tell; only want of room ends the round.
    pub(crate) fn begin<F>(
        &self,
        ids: Vec<String>,
        at_once: usize,
        ask: impl Fn(String) -> F + Send + 'static,
    ) where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        if ids.is_empty() || self.is_resting() {
            return;
        }
        let Ok(turn) = Arc::clone(&self.turn).try_acquire_owned() else {
            return;
        };
        let rest = Arc::clone(&self.rest);
        tokio::spawn(async move {
            let _turn = turn;
            let one = move |id| {
                let asked = ask(id);
                async move {
                    match asked.await {
                        Err(error) if error.kind == ProviderErrorKind::NoCapacity => Err(error),
                        _ => Ok(()),
                    }
                }
            };
            let round = stream::iter(ids.into_iter().map(Ok));
            if let Err(error) = round.try_for_each_concurrent(at_once, one).await {
                let pause = error.retry_after.unwrap_or(USUAL_PAUSE);
                let mut rest = rest.lock().unwrap_or_else(PoisonError::into_inner);
                *rest = Some(Instant::now() + pause);
            }
        });
    }

    fn is_resting(&self) -> bool {
        let rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        rest.is_some_and(|until| Instant::now() < until)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use sandyard_provider::ProviderError;

    use super::*;

    /// Asks for a hundred; every `nth` is one too many.
    async fn round(rounds: &BackgroundBatches, nth: usize, kind: ProviderErrorKind) -> usize {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let ids = (0..100).map(|number| number.to_string()).collect();
        rounds.begin(ids, 1, move |_| {
            let is_bad = (count.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(nth);
            async move {
                match is_bad {
                    true => Err(ProviderError::new(kind, "no").retry_after(Duration::from_secs(7))),
                    false => Ok(()),
                }
            }
        });
        // Nobody begins another before this one is over.
        let _over = rounds.turn.acquire().await.expect("nobody closes it");
        asked.load(Ordering::Relaxed)
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_has_had_enough_is_left_alone_for_as_long_as_it_says() {
        use ProviderErrorKind::{NoCapacity, Unavailable};
        let rounds = BackgroundBatches::default();
        assert_eq!(round(&rounds, 3, Unavailable).await, 100, "others go on");
        assert_eq!(round(&rounds, 3, NoCapacity).await, 3);
        assert_eq!(round(&rounds, 3, NoCapacity).await, 0, "it rests");
        tokio::time::advance(Duration::from_millis(6900)).await;
        assert_eq!(round(&rounds, 3, NoCapacity).await, 0);
        tokio::time::advance(Duration::from_millis(200)).await;
        assert_eq!(round(&rounds, 101, NoCapacity).await, 100);
    }

    #[tokio::test]
    async fn there_is_one_round_at_a_time() {
        let rounds = BackgroundBatches::default();
        let held = rounds.turn.clone().acquire_owned().await;
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        rounds.begin(vec!["a".to_owned()], 1, move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            async { Ok(()) }
        });
        drop(held);
        tokio::task::yield_now().await;
        assert_eq!(asked.load(Ordering::Relaxed), 0);
    }
}
