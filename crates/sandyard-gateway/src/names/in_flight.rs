//! Look-ups in progress, one per name: concurrent requests for a name share one look-up.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::lookup::NotFound;

type Result = std::result::Result<Vec<IpAddr>, NotFound>;
type Lookups = HashMap<String, Lookup>;

/// The look-ups in progress.
#[derive(Debug, Default)]
pub(super) struct InFlight(Mutex<Lookups>);

/// One look-up, and how many wait for it.
#[derive(Debug, Default)]
struct Lookup {
    answer: Arc<OnceCell<Result>>,
    waiting: usize,
}

impl InFlight {
    /// Waits for the look-up of a name that is in progress, or runs this one. If the running one is cancelled, another waiter
    /// runs its own.
    pub(super) async fn join(
        &self,
        name: &str,
        look_up: impl Future<Output = Result> + Send,
    ) -> Result {
        let waiter = Waiter::new(self, name);
        waiter.answer.get_or_init(|| look_up).await.clone()
    }
}

/// A waiter. The last one removes the look-up.
struct Waiter<'a> {
    in_flight: &'a InFlight,
    name: &'a str,
    answer: Arc<OnceCell<Result>>,
}

impl<'a> Waiter<'a> {
    fn new(in_flight: &'a InFlight, name: &'a str) -> Self {
        let mut lookups = in_flight.0.lock();
        let lookup = lookups.entry(name.to_owned()).or_default();
        if lookup.answer.initialized() {
            // It is finished, and its waiters are still returning. New callers must not get an uncacheable answer.
            *lookup = Lookup::default();
        }
        lookup.waiting += 1;
        let answer = lookup.answer.clone();
        Self {
            in_flight,
            name,
            answer,
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut lookups = self.in_flight.0.lock();
        let Some(lookup) = lookups.get_mut(self.name) else {
            return;
        };
        if !Arc::ptr_eq(&lookup.answer, &self.answer) {
            // A newer look-up has replaced it.
            return;
        }
        lookup.waiting -= 1;
        if lookup.waiting == 0 {
            lookups.remove(self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures_util::FutureExt;
    use futures_util::future::poll_immediate;
    use tokio::sync::oneshot;

    use super::*;

    fn addresses(last: u8) -> Result {
        Ok(vec![[192, 0, 2, last].into()])
    }

    #[tokio::test]
    async fn concurrent_lookups_of_a_name_share_one_answer() {
        let in_flight = InFlight::default();
        let (answer, answered) = oneshot::channel();
        let mut first = Box::pin(in_flight.join("a", answered.map(|answer| answer.unwrap())));
        assert_eq!(poll_immediate(&mut first).await, None);
        let mut second = Box::pin(in_flight.join("a", async { panic!("asked twice") }));
        assert_eq!(poll_immediate(&mut second).await, None);
        assert_eq!(in_flight.join("b", ready(addresses(2))).await, addresses(2));
        answer.send(addresses(1)).unwrap();
        assert_eq!(first.await, addresses(1));
        // A caller after the end of a look-up starts a new one.
        assert_eq!(in_flight.join("a", ready(addresses(3))).await, addresses(3));
        assert_eq!(second.await, addresses(1));
        assert!(in_flight.0.lock().is_empty());
    }

    #[tokio::test]
    async fn another_waiter_continues_when_one_is_cancelled() {
        let in_flight = InFlight::default();
        let mut first = Box::pin(in_flight.join("a", pending()));
        assert_eq!(poll_immediate(&mut first).await, None);
        let mut second = Box::pin(in_flight.join("a", ready(addresses(1))));
        assert_eq!(poll_immediate(&mut second).await, None);
        drop(first);
        assert_eq!(second.await, addresses(1));
        let mut alone = Box::pin(in_flight.join("a", pending()));
        assert_eq!(poll_immediate(&mut alone).await, None);
        drop(alone);
        assert!(in_flight.0.lock().is_empty());
    }
}
