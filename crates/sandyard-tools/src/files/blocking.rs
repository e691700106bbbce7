//! Work that blocks, away from the one thread that answers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use crate::reply::Problem;

/// For parsers that go deeper the deeper their input is. Only what is used of it costs memory.
const DEEP_STACK: usize = 256 * 1024 * 1024;
/// So many of those at once: a parser that does not end is left behind and keeps its place. Tests share a process, and none is
/// to wait for another's.
static DEEP: Semaphore = Semaphore::const_new(if cfg!(test) { 1000 } else { 3 });
/// How long such a parser may go on after it was told to end.
const GRACE: Duration = Duration::from_secs(2);

/// Until when work may go on.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    cancelled: CancellationToken,
    end: Instant,
}

impl Bounds {
    /// Until the call is cancelled, and at most so long.
    pub(crate) fn new(cancelled: &CancellationToken, at_most: Duration) -> Self {
        // Tests see what comes of the work, on machines that may be busy.
        let at_most = at_most * if cfg!(test) { 4 } else { 1 };
        Self {
            cancelled: cancelled.clone(),
            end: Instant::now() + at_most,
        }
    }

    /// Whether the time is up or nobody waits any more.
    pub(crate) fn are_over(&self) -> bool {
        self.cancelled.is_cancelled() || Instant::now() >= self.end
    }
}

/// Does work with files. A panic in it is a problem of this call only.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(failed_inside()))
}

/// Does work that may need much stack or never end, on a thread that can be left behind.
pub(crate) async fn deep<T: Send + 'static>(
    bounds: &Bounds,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let end = tokio::time::Instant::from_std(bounds.end + GRACE);
    let Ok(Ok(place)) = tokio::time::timeout_at(end, DEEP.acquire()).await else {
        return Err(Problem::new(
            "too much of this kind of work is going on: try again in a minute",
        ));
    };
    let (tell, told) = oneshot::channel();
    let thread = std::thread::Builder::new()
        .name("parser".to_owned())
        .stack_size(DEEP_STACK)
        .spawn(move || {
            let done =
                catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(failed_inside()));
            drop(place);
            // Nobody may be waiting any more.
            let _ = tell.send(done);
        });
    if thread.is_err() {
        return Err(Problem::new("there is no thread for it: try again later"));
    }
    match tokio::time::timeout_at(end, told).await {
        Ok(done) => done.unwrap_or_else(|_| Err(failed_inside())),
        Err(_) => Err(Problem::new(
            "this took too long and was given up: use a command for it instead",
        )),
    }
}

fn failed_inside() -> Problem {
    Problem::new("the content could not be understood: use a command for it instead")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn panics_and_deep_calls_end_one_call_only() {
        let bounds = Bounds::new(&CancellationToken::new(), Duration::from_secs(60));
        let panics = || -> Result<(), Problem> { panic!("as parsers do") };
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
    async fn work_that_does_not_end_is_left_behind() {
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
