//! Runs blocking work on other threads, because the server has only one async thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use crate::reply::{Problem, Result};

/// Stack size for recursive parsers. Only the used part needs memory.
const DEEP_STACK: usize = 256 * 1024 * 1024;
/// Slots for such parsers. A parser that does not end is abandoned and keeps its slot. Unlimited in tests, which share a process.
static DEEP_SLOTS: Semaphore = Semaphore::const_new(if cfg!(test) { 1000 } else { 3 });
/// How long such a parser may continue after its time is up.
const GRACE: Duration = Duration::from_secs(2);

/// Time limit and cancellation of work.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    cancelled: CancellationToken,
    end: Instant,
}

impl Bounds {
    /// Limits work to a duration, or until the call is cancelled.
    pub(crate) fn new(cancelled: &CancellationToken, limit: Duration) -> Self {
        // Tests run on busy machines.
        let limit = limit * if cfg!(test) { 4 } else { 1 };
        Self {
            cancelled: cancelled.clone(),
            end: Instant::now() + limit,
        }
    }

    /// Returns whether the time is up or the call is cancelled.
    pub(crate) fn are_over(&self) -> bool {
        self.cancelled.is_cancelled() || Instant::now() >= self.end
    }
}

/// Runs work that blocks on files. A panic in it fails only this call.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(panicked()))
}

/// Runs work that may need a large stack or never end, on a thread that can be abandoned.
pub(crate) async fn deep<T: Send + 'static>(
    bounds: &Bounds,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let end = tokio::time::Instant::from_std(bounds.end + GRACE);
    let Ok(Ok(slot)) = tokio::time::timeout_at(end, DEEP_SLOTS.acquire()).await else {
        return Err(Problem::new(
            "too many documents are being parsed at the same time: try again in a minute",
        ));
    };
    let (sender, receiver) = oneshot::channel();
    let thread = std::thread::Builder::new()
        .name("parser".to_owned())
        .stack_size(DEEP_STACK)
        .spawn(move || {
            let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(panicked()));
            drop(slot);
            // The caller may be gone.
            let _ = sender.send(done);
        });
    if thread.is_err() {
        return Err(Problem::new("cannot create a thread: try again later"));
    }
    match tokio::time::timeout_at(end, receiver).await {
        Ok(done) => done.unwrap_or_else(|_| Err(panicked())),
        Err(_) => Err(Problem::new(
            "this took too long and was aborted: use a command instead",
        )),
    }
}

fn panicked() -> Problem {
    Problem::new("the content could not be parsed: use a command instead")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_fails_only_its_call_and_deep_recursion_works() {
        let bounds = Bounds::new(&CancellationToken::new(), Duration::from_secs(60));
        let panics = || -> Result<()> { panic!("as parsers do") };
        assert!(deep(&bounds, panics).await.is_err());
        assert!(blocking(panics).await.is_err());
        fn down(depth: u64) -> u64 {
            let frame = std::hint::black_box([depth; 64]);
            if depth == 0 {
                0
            } else {
                down(depth - 1) + frame[0].min(1)
            }
        }
        let reached = deep(&bounds, || Ok(down(100_000))).await.unwrap();
        assert_eq!(reached, 100_000);
    }

    #[tokio::test]
    async fn work_that_does_not_end_is_abandoned() {
        let bounds = Bounds::new(&CancellationToken::new(), Duration::ZERO);
        let (release, held) = std::sync::mpsc::channel::<()>();
        let problem = deep(&bounds, move || {
            // Until the test is over.
            let _ = held.recv();
            Ok(())
        });
        assert!(problem.await.unwrap_err().to_string().contains("too long"));
        drop(release);
    }
}
