//! Look-ups under way, one a name: whoever asks for the same in the meantime gets the same answer.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OnceCell;

use super::find::Missing;

type Result = std::result::Result<Vec<IpAddr>, Missing>;
type UnderWay = HashMap<String, Flight>;

/// The look-ups that are under way.
#[derive(Debug, Default)]
pub(super) struct Shared(Mutex<UnderWay>);

/// One look-up, and how many wait for it.
#[derive(Debug, Default)]
struct Flight {
    answer: Arc<OnceCell<Result>>,
    waiting: usize,
}

impl Shared {
    /// Waits for the look-up of a name that is under way, or does this one. If whoever does it gives up, another one who waits
    /// goes on with its own.
    pub(super) async fn join(
        &self,
        name: &str,
        look_up: impl Future<Output = Result> + Send,
    ) -> Result {
        let seat = Seat::take(self, name);
        seat.answer.get_or_init(|| look_up).await.clone()
    }

    fn under_way(&self) -> MutexGuard<'_, UnderWay> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One who waits. The last one takes the look-up away with it.
struct Seat<'a> {
    shared: &'a Shared,
    name: &'a str,
    answer: Arc<OnceCell<Result>>,
}

impl<'a> Seat<'a> {
    fn take(shared: &'a Shared, name: &'a str) -> Self {
        let mut under_way = shared.under_way();
        let flight = under_way.entry(name.to_owned()).or_default();
        if flight.answer.initialized() {
            // It has landed, and those it was for are still leaving. An answer that must not be kept is not for latecomers.
            *flight = Flight::default();
        }
        flight.waiting += 1;
        let answer = flight.answer.clone();
        Self {
            shared,
            name,
            answer,
        }
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let mut under_way = self.shared.under_way();
        let Some(flight) = under_way.get_mut(self.name) else {
            return;
        };
        if !Arc::ptr_eq(&flight.answer, &self.answer) {
            // Another one has taken its place.
            return;
        }
        flight.waiting -= 1;
        if flight.waiting == 0 {
            under_way.remove(self.name);
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

    fn found(last: u8) -> Result {
        Ok(vec![[192, 0, 2, last].into()])
    }

    #[tokio::test]
    async fn those_who_ask_meanwhile_get_the_same_answer() {
        let shared = Shared::default();
        let (answer, answered) = oneshot::channel();
        let mut first = Box::pin(shared.join("a", answered.map(|answer| answer.unwrap())));
        assert_eq!(poll_immediate(&mut first).await, None);
        let mut second = Box::pin(shared.join("a", async { panic!("asked twice") }));
        assert_eq!(poll_immediate(&mut second).await, None);
        assert_eq!(shared.join("b", ready(found(2))).await, found(2));
        answer.send(found(1)).unwrap();
        assert_eq!(first.await, found(1));
        // One who comes when it has landed asks anew.
        assert_eq!(shared.join("a", ready(found(3))).await, found(3));
        assert_eq!(second.await, found(1));
        assert!(shared.under_way().is_empty());
    }

    #[tokio::test]
    async fn another_goes_on_where_one_gives_up() {
        let shared = Shared::default();
        let mut first = Box::pin(shared.join("a", pending()));
        assert_eq!(poll_immediate(&mut first).await, None);
        let mut second = Box::pin(shared.join("a", ready(found(1))));
        assert_eq!(poll_immediate(&mut second).await, None);
        drop(first);
        assert_eq!(second.await, found(1));
        let mut alone = Box::pin(shared.join("a", pending()));
        assert_eq!(poll_immediate(&mut alone).await, None);
        drop(alone);
        assert!(shared.under_way().is_empty());
    }
}
