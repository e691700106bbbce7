//! Concurrent requests from threads with a connection each.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;

/// Runs `work` for each of `0..count` in `width` threads, each with its own of what `open` gives.
///
/// The first failure in order is the result; all threads have ended by then.
pub(super) fn each<C, T: Send>(
    count: usize,
    width: usize,
    open: impl Fn() -> Result<C> + Sync,
    work: impl Fn(&C, usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let connection = open()?;
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return Ok(done);
            }
            done.push((index, work(&connection, index)?));
        }
    };
    let mut all = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..width.min(count)).map(|_| scope.spawn(worker)).collect();
        let mut all = Vec::with_capacity(count);
        for thread in threads {
            let done: Result<Vec<(usize, T)>> = thread
                .join()
                .expect("a thread that returns errors does not panic");
            all.extend(done?);
        }
        anyhow::Ok(all)
    })?;
    all.sort_by_key(|(index, _)| *index);
    Ok(all.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn results_come_in_order_of_their_index() {
        let squares = each(50, 4, || Ok(2), |power, index| Ok(index.pow(*power))).unwrap();
        assert_eq!(
            squares,
            (0..50).map(|index| index * index).collect::<Vec<usize>>()
        );
    }

    #[test]
    fn one_failure_is_a_failure() {
        let result = each(
            5,
            2,
            || Ok(()),
            |(), index| match index {
                3 => bail!("no"),
                _ => Ok(index),
            },
        );
        assert!(result.is_err());
    }
}
