//! Bounds the bytes of requests and answers that the server holds in memory, for all callers together and for each one.
//!
//! A client that reads slowly keeps its answer in memory, and one that sends slowly its request. Each of them is bounded elsewhere; this
//! bounds their sum. Code that collects such bytes takes a [`MemoryHold`] and grows it before it grows the buffer.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// Buffers up to this size are not counted. Most requests and answers are smaller.
pub const UNCOUNTED_BYTES: usize = 8 << 10;
/// How long a request waits for others to release memory.
pub const MEMORY_WAIT: Duration = Duration::from_secs(10);
/// One caller may hold the total divided by this number.
const CALLER_SHARE: usize = 4;

/// The budget of one server. Cheap to clone.
#[derive(Clone, Debug)]
pub struct MemoryBudget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    total: usize,
    per_caller: usize,
    used: Mutex<Used>,
    released: Notify,
}

#[derive(Debug, Default)]
struct Used {
    total: usize,
    callers: HashMap<Arc<str>, usize>,
}

/// Which bound was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// The caller's share.
    Caller,
    /// The total of all callers.
    Total,
}

impl MemoryBudget {
    /// A budget of `total` bytes, of which each caller may hold a quarter.
    pub fn new(total: usize) -> Self {
        Self(Arc::new(Inner {
            total,
            per_caller: total / CALLER_SHARE,
            used: Mutex::default(),
            released: Notify::new(),
        }))
    }

    /// Starts counting for a caller; nothing is held yet.
    pub fn hold(&self, caller: &str) -> MemoryHold {
        MemoryHold {
            budget: self.clone(),
            caller: caller.into(),
            bytes: AtomicUsize::new(0),
        }
    }

    /// Bytes held by all callers.
    pub fn used(&self) -> usize {
        self.0.used.lock().total
    }

    fn take(&self, caller: &Arc<str>, bytes: usize) -> Result<(), Shortage> {
        let mut used = self.0.used.lock();
        let own = used.callers.get(caller).copied().unwrap_or(0);
        if own.saturating_add(bytes) > self.0.per_caller {
            return Err(Shortage::Caller);
        }
        if used.total.saturating_add(bytes) > self.0.total {
            return Err(Shortage::Total);
        }
        used.total += bytes;
        *used.callers.entry(caller.clone()).or_default() += bytes;
        Ok(())
    }

    fn give_back(&self, caller: &Arc<str>, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let mut used = self.0.used.lock();
        used.total = used.total.saturating_sub(bytes);
        if let Entry::Occupied(mut own) = used.callers.entry(caller.clone()) {
            *own.get_mut() = own.get().saturating_sub(bytes);
            if *own.get() == 0 {
                own.remove();
            }
        }
        drop(used);
        self.0.released.notify_waiters();
    }
}

/// Bytes that one request or answer holds; released when this is dropped.
#[derive(Debug)]
pub struct MemoryHold {
    budget: MemoryBudget,
    caller: Arc<str>,
    bytes: AtomicUsize,
}

impl MemoryHold {
    /// Takes `bytes` more without waiting.
    pub fn try_grow(&self, bytes: usize) -> Result<(), Shortage> {
        self.budget.take(&self.caller, bytes)?;
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Takes `bytes` more, and waits up to `max_wait` for others to release theirs.
    pub async fn grow(&self, bytes: usize, max_wait: Duration) -> Result<(), Shortage> {
        let deadline = Instant::now() + max_wait;
        loop {
            let released = self.budget.0.released.notified();
            tokio::pin!(released);
            // Registered before the attempt, so that no release is missed.
            released.as_mut().enable();
            let Err(shortage) = self.try_grow(bytes) else {
                return Ok(());
            };
            // No release makes room for more than a caller's share.
            if bytes > self.budget.0.per_caller {
                return Err(shortage);
            }
            if timeout_at(deadline, released).await.is_err() {
                return Err(shortage);
            }
        }
    }

    /// Releases all but `bytes`.
    pub fn shrink_to(&self, bytes: usize) {
        let held = self.bytes.load(Ordering::Relaxed);
        let surplus = held.saturating_sub(bytes);
        self.bytes.fetch_sub(surplus, Ordering::Relaxed);
        self.budget.give_back(&self.caller, surplus);
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for MemoryHold {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_caller_gets_more_than_its_share_and_all_no_more_than_the_total() {
        let budget = MemoryBudget::new(400);
        let holds: Vec<_> = ["a", "b", "c", "d", "e"]
            .into_iter()
            .map(|caller| (budget.hold(caller), caller))
            .collect();
        for (hold, caller) in &holds[..4] {
            assert_eq!(hold.try_grow(60), Ok(()), "{caller}");
            assert_eq!(hold.try_grow(41), Err(Shortage::Caller), "{caller}");
            assert_eq!(hold.try_grow(40), Ok(()), "{caller}");
        }
        assert_eq!(holds[4].0.try_grow(1), Err(Shortage::Total));
        assert_eq!(budget.used(), 400);
        drop(holds);
        assert_eq!(budget.used(), 0);
        assert!(budget.0.used.lock().callers.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_hold_waits_for_another_to_be_released() {
        let budget = MemoryBudget::new(400);
        let first = budget.hold("a");
        assert_eq!(first.try_grow(100), Ok(()));
        let second = budget.hold("a");
        assert_eq!(
            second.grow(1, MEMORY_WAIT).await,
            Err(Shortage::Caller),
            "nobody releases anything"
        );
        let waiting = tokio::spawn(async move { second.grow(70, MEMORY_WAIT).await });
        tokio::task::yield_now().await;
        first.shrink_to(30);
        assert_eq!(waiting.await.unwrap(), Ok(()));
        assert_eq!(budget.used(), 30, "the second is gone with its task");
        // What can never fit is refused at once.
        assert_eq!(first.grow(101, MEMORY_WAIT).await, Err(Shortage::Caller));
    }
}
