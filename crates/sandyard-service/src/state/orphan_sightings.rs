//! Since when the reconciler has seen each orphan.

use std::collections::HashMap;

use parking_lot::Mutex;

/// The orphans seen so far, by location and instance id.
#[derive(Debug, Default)]
pub(crate) struct OrphanSightings(Mutex<HashMap<(String, String), Sighting>>);

#[derive(Debug)]
struct Sighting {
    first_seen_ms: i64,
    /// Whether the log has a warning that the database does not know the instance.
    is_reported: bool,
}

impl OrphanSightings {
    /// Replaces what is known of a location by the orphans it has now. Returns since when each of them was seen, in milliseconds.
    pub(crate) fn update(&self, location: &str, orphans: &[&str], now_ms: i64) -> Vec<i64> {
        let mut sightings = self.0.lock();
        sightings.retain(|(known, id), _| known != location || orphans.contains(&id.as_str()));
        let first_seen_ms = |id: &&str| {
            let key = (location.to_owned(), (*id).to_owned());
            let sighting = sightings.entry(key).or_insert(Sighting {
                first_seen_ms: now_ms,
                is_reported: false,
            });
            sighting.first_seen_ms
        };
        orphans.iter().map(first_seen_ms).collect()
    }

    /// Marks an orphan as reported. Returns false if it was reported before.
    pub(crate) fn mark_reported(&self, location: &str, id: &str) -> bool {
        let key = (location.to_owned(), id.to_owned());
        let mut sightings = self.0.lock();
        sightings
            .get_mut(&key)
            .is_some_and(|sighting| !std::mem::replace(&mut sighting.is_reported, true))
    }
}
