//! The queue of what is due.

use std::time::Duration;

use sandyard_core::Clock;

use crate::error::StoreResult;
use crate::model::Timer;
use crate::store::Store;

/// The queue over the store's timers. With Redis, servers learn from it what is due instead of asking the database; the
/// claim is always the store's, so a timer fires once whatever Redis says or forgets.
#[derive(Clone, Debug)]
pub struct Timers {}

#[expect(clippy::unused_async, unused_variables, reason = "filled in next")]
impl Timers {
    /// The queue of `store`, with Redis if a URL is given. An unreachable Redis is no error: the store is asked until it
    /// is back.
    pub async fn open(store: Store, redis_url: Option<&str>, clock: Clock) -> StoreResult<Self> {
        unimplemented!()
    }
    /// `database` or `redis`.
    pub fn kind(&self) -> &'static str {
        unimplemented!()
    }
    /// Sets a timer in place of the one with the same topic and subject.
    pub async fn set(
        &self,
        topic: &str,
        subject: &str,
        location: &str,
        due_ms: i64,
    ) -> StoreResult<()> {
        unimplemented!()
    }
    /// Takes a timer away.
    pub async fn clear(&self, topic: &str, subject: &str) -> StoreResult<()> {
        unimplemented!()
    }
    /// Tells the queue of a timer that a commit of the store has set, so that whoever waits looks again.
    pub async fn announce(&self, topic: &str, subject: &str, location: &str, due_ms: i64) {
        unimplemented!()
    }
    /// Claims up to `limit` due timers of these places for `lease`; each is handed to one server only, until the lease ends.
    pub async fn claim(
        &self,
        locations: &[String],
        holder: &str,
        lease: Duration,
        limit: usize,
    ) -> StoreResult<Vec<Timer>> {
        unimplemented!()
    }
    /// Ends a claimed timer; false: it was set anew meanwhile, and the newer one stays.
    pub async fn complete(&self, timer: &Timer) -> StoreResult<bool> {
        unimplemented!()
    }
    /// Puts a claimed timer back, to be tried again at `due_ms`, unless it was set anew meanwhile.
    pub async fn retry(&self, timer: &Timer, due_ms: i64, error: &str) -> StoreResult<()> {
        unimplemented!()
    }
    /// Lays a claimed timer among the dead, unless it was set anew meanwhile.
    pub async fn bury(&self, timer: &Timer, error: &str) -> StoreResult<()> {
        unimplemented!()
    }
    /// Lists the dead.
    pub async fn dead(&self) -> StoreResult<Vec<Timer>> {
        unimplemented!()
    }
    /// Gives a dead timer another chance now; false: there is none.
    pub async fn revive(&self, topic: &str, subject: &str) -> StoreResult<bool> {
        unimplemented!()
    }
    /// Waits until something of these places may be due, at most `most`: a timer's time has come, or one was announced.
    pub async fn wait(&self, locations: &[String], most: Duration) {
        unimplemented!()
    }
}
