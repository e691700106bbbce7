//! A cache of recently found addresses.
//!
//! The resolver's own cache would store whole answers. The owner of a name decides how long they are, and sandboxes choose the
//! names: 4096 of the longest would take gigabytes. Addresses are few.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::lookup::NotFound;

/// Maximum number of cached names of all sandboxes together.
const MAX_NAMES: usize = 4096;

/// Names that are evicted at once when none has expired: a sandbox that looks up many must not evict all names of others.
const EVICTED: usize = MAX_NAMES / 8;

/// Maximum time that addresses are cached, whatever their TTL: a name is judged by its current addresses.
const MAX_FOUND_TIME: Duration = Duration::from_secs(60);

/// Maximum time that a missing name is cached: it may be created soon.
const MAX_NOT_FOUND_TIME: Duration = Duration::from_secs(10);

type Names = HashMap<String, (Instant, Result)>;
type Result = std::result::Result<Vec<IpAddr>, NotFound>;

/// Caches the results of look-ups.
#[derive(Debug, Default)]
pub(super) struct AddressCache(Mutex<Names>);

impl AddressCache {
    /// The result for a name, if it has not expired.
    pub(super) fn get(&self, name: &str) -> Option<Result> {
        let cached = self.0.lock();
        let (until, result) = cached.get(name)?;
        (*until > Instant::now()).then(|| result.clone())
    }

    /// Caches a result for its TTL, within bounds. A missing answer is not cached.
    pub(super) fn put(&self, name: &str, result: &Result, lifetime: Duration) {
        let longest = match result {
            Ok(_) => MAX_FOUND_TIME,
            Err(NotFound::Name | NotFound::Record) => MAX_NOT_FOUND_TIME,
            Err(NotFound::Answer) => return,
        };
        let now = Instant::now();
        let mut cached = self.0.lock();
        if cached.len() >= MAX_NAMES {
            cached.retain(|_, (until, _)| *until > now);
            if cached.len() >= MAX_NAMES {
                remove_oldest(&mut cached);
            }
        }
        cached.insert(
            name.to_owned(),
            (now + lifetime.min(longest), result.clone()),
        );
    }
}

/// Removes those that expire first.
fn remove_oldest(cached: &mut Names) {
    let mut by_end: Vec<(Instant, String)> = cached
        .iter()
        .map(|(name, (until, _))| (*until, name.clone()))
        .collect();
    if by_end.len() > EVICTED {
        by_end.select_nth_unstable(EVICTED);
    }
    for (_, name) in by_end.iter().take(EVICTED) {
        cached.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn addresses() -> Result {
        Ok(vec![[192, 0, 2, 1].into()])
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_found_is_kept_for_its_time_and_never_long() {
        let cached = AddressCache::default();
        cached.put("short", &addresses(), Duration::from_secs(5));
        cached.put("long", &addresses(), HOUR);
        cached.put("never", &addresses(), Duration::ZERO);
        cached.put("missing", &Err(NotFound::Name), HOUR);
        cached.put("silent", &Err(NotFound::Answer), HOUR);
        assert_eq!(cached.get("short"), Some(addresses()));
        assert_eq!(cached.get("missing"), Some(Err(NotFound::Name)));
        assert_eq!(
            (
                cached.get("never"),
                cached.get("silent"),
                cached.get("else")
            ),
            (None, None, None)
        );
        advance(Duration::from_secs(10)).await;
        assert_eq!((cached.get("short"), cached.get("missing")), (None, None));
        assert_eq!(cached.get("long"), Some(addresses()));
        advance(Duration::from_secs(50)).await;
        assert_eq!(cached.get("long"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_is_kept_than_there_is_room_for() {
        let cached = AddressCache::default();
        for n in 0..3 * MAX_NAMES {
            cached.put(&n.to_string(), &addresses(), HOUR);
            assert!(cached.0.lock().len() <= MAX_NAMES);
        }
        assert!(cached.get(&(3 * MAX_NAMES - 1).to_string()).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_make_room_and_the_others_stay() {
        let cached = AddressCache::default();
        for n in 0..=MAX_NAMES {
            cached.put(&n.to_string(), &addresses(), HOUR);
            advance(Duration::from_millis(1)).await;
        }
        assert_eq!(cached.get(&(EVICTED - 1).to_string()), None);
        assert!((EVICTED..=MAX_NAMES).all(|n| cached.get(&n.to_string()).is_some()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_ended_makes_room_before_anything_else() {
        let cached = AddressCache::default();
        cached.put("before", &addresses(), HOUR);
        for n in 1..MAX_NAMES {
            cached.put(&n.to_string(), &addresses(), Duration::from_secs(1));
        }
        advance(Duration::from_secs(2)).await;
        cached.put("after", &addresses(), HOUR);
        assert_eq!(cached.0.lock().len(), 2);
        assert!(cached.get("before").is_some() && cached.get("after").is_some());
    }
}
