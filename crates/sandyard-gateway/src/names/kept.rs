//! Addresses that were found a moment ago.
//!
//! The resolver would keep whole answers. Those are as long as whoever owns a name makes them, and sandboxes choose the names:
//! 4096 of the longest would be gigabytes. Addresses are few.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::find::Missing;

/// Names that are kept, of all sandboxes together.
const MAX_NAMES: usize = 4096;

/// Names that make room when all may still be used: a sandbox that asks for many must not cost the others all of theirs.
const MAKE_ROOM: usize = MAX_NAMES / 8;

/// Addresses are kept for a short time, whatever their owner says: a name is judged by what it leads to now.
const LONGEST_FOUND: Duration = Duration::from_secs(60);

/// That there are none is kept shorter still: somebody may be about to make the name.
const LONGEST_MISSING: Duration = Duration::from_secs(10);

type Names = HashMap<String, (Instant, Result)>;
type Result = std::result::Result<Vec<IpAddr>, Missing>;

/// Remembers what look-ups found.
#[derive(Debug, Default)]
pub(super) struct Kept(Mutex<Names>);

impl Kept {
    /// What was found for a name, if it may still be used.
    pub(super) fn get(&self, name: &str) -> Option<Result> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, result) = kept.get(name)?;
        (*until > Instant::now()).then(|| result.clone())
    }

    /// Keeps what was found for as long as its owner says, within bounds. That nobody answered is not kept.
    pub(super) fn put(&self, name: &str, result: &Result, lifetime: Duration) {
        let longest = match result {
            Ok(_) => LONGEST_FOUND,
            Err(Missing::Name | Missing::Record) => LONGEST_MISSING,
            Err(Missing::Answer) => return,
        };
        let now = Instant::now();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_NAMES {
            kept.retain(|_, (until, _)| *until > now);
            if kept.len() >= MAX_NAMES {
                remove_oldest(&mut kept);
            }
        }
        kept.insert(
            name.to_owned(),
            (now + lifetime.min(longest), result.clone()),
        );
    }
}

/// Removes some of those that end soonest.
fn remove_oldest(kept: &mut Names) {
    let mut by_end: Vec<(Instant, String)> = kept
        .iter()
        .map(|(name, (until, _))| (*until, name.clone()))
        .collect();
    if by_end.len() > MAKE_ROOM {
        by_end.select_nth_unstable(MAKE_ROOM);
    }
    for (_, name) in by_end.iter().take(MAKE_ROOM) {
        kept.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn found() -> Result {
        Ok(vec![[192, 0, 2, 1].into()])
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_found_is_kept_for_its_time_and_never_long() {
        let kept = Kept::default();
        kept.put("short", &found(), Duration::from_secs(5));
        kept.put("long", &found(), HOUR);
        kept.put("never", &found(), Duration::ZERO);
        kept.put("missing", &Err(Missing::Name), HOUR);
        kept.put("silent", &Err(Missing::Answer), HOUR);
        assert_eq!(kept.get("short"), Some(found()));
        assert_eq!(kept.get("missing"), Some(Err(Missing::Name)));
        assert_eq!(
            (kept.get("never"), kept.get("silent"), kept.get("else")),
            (None, None, None)
        );
        advance(Duration::from_secs(10)).await;
        assert_eq!((kept.get("short"), kept.get("missing")), (None, None));
        assert_eq!(kept.get("long"), Some(found()));
        advance(Duration::from_secs(50)).await;
        assert_eq!(kept.get("long"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_is_kept_than_there_is_room_for() {
        let kept = Kept::default();
        for n in 0..3 * MAX_NAMES {
            kept.put(&n.to_string(), &found(), HOUR);
            assert!(kept.0.lock().unwrap().len() <= MAX_NAMES);
        }
        assert!(kept.get(&(3 * MAX_NAMES - 1).to_string()).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_make_room_and_the_others_stay() {
        let kept = Kept::default();
        for n in 0..=MAX_NAMES {
            kept.put(&n.to_string(), &found(), HOUR);
            advance(Duration::from_millis(1)).await;
        }
        assert_eq!(kept.get(&(MAKE_ROOM - 1).to_string()), None);
        assert!((MAKE_ROOM..=MAX_NAMES).all(|n| kept.get(&n.to_string()).is_some()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_ended_makes_room_before_anything_else() {
        let kept = Kept::default();
        kept.put("before", &found(), HOUR);
        for n in 1..MAX_NAMES {
            kept.put(&n.to_string(), &found(), Duration::from_secs(1));
        }
        advance(Duration::from_secs(2)).await;
        kept.put("after", &found(), HOUR);
        assert_eq!(kept.0.lock().unwrap().len(), 2);
        assert!(kept.get("before").is_some() && kept.get("after").is_some());
    }
}
