//! Which commands this server follows, which ones their agents may forget, and which sandboxes have to be asked again.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sandyard_core::SandboxId;

/// Most sandboxes that are asked again in one pass.
const MAX_DUE: usize = 8;
/// Shortest and longest pause before a sandbox that did not answer is asked again.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Commands to be released, by sandbox.
pub(crate) type Releases = HashMap<SandboxId, Vec<Release>>;

/// A command that its agent may forget.
#[derive(Debug)]
pub(crate) struct Release {
    /// The id of the command.
    pub(crate) command: String,
    /// Whether the command log has it as open.
    pub(crate) is_in_log: bool,
}

/// The commands that this server records.
#[derive(Debug, Default)]
pub(crate) struct Recorders {
    /// Commands whose stream this server reads. By sandbox, because an agent may claim any command id.
    followed: Mutex<HashSet<(SandboxId, String)>>,
    /// Commands whose end is about to be stored. Their agents may forget them once it is.
    releases: Mutex<Releases>,
    adoptions: Mutex<Adoptions>,
    /// Sandboxes that did not say which commands they keep.
    unanswered: Mutex<HashMap<SandboxId, Unanswered>>,
}

/// When all sandboxes were last asked for commands without a server.
#[derive(Debug, Default)]
struct Adoptions {
    /// Counts the reasons to ask.
    requested: u64,
    /// By location: the count that was served.
    served: HashMap<String, u64>,
}

/// A sandbox that is to be asked again.
#[derive(Debug)]
struct Unanswered {
    location: String,
    failures: u32,
    due: Instant,
}

impl Recorders {
    /// Has all sandboxes asked for commands that another server left.
    pub(crate) fn request_adoption(&self) {
        self.adoptions.lock().requested += 1;
    }

    /// The adoption that a location still needs; none if it has had the latest one. The first one is always needed.
    pub(crate) fn pending_adoption(&self, location: &str) -> Option<u64> {
        let adoptions = self.adoptions.lock();
        let next = adoptions.requested + 1;
        (adoptions.served.get(location) != Some(&next)).then_some(next)
    }

    pub(crate) fn finish_adoption(&self, location: &str, adoption: u64) {
        let mut adoptions = self.adoptions.lock();
        adoptions.served.insert(location.to_owned(), adoption);
    }

    pub(crate) fn add_release(&self, id: &SandboxId, release: Release) {
        let mut releases = self.releases.lock();
        releases.entry(id.clone()).or_default().push(release);
    }

    pub(crate) fn take_releases(&self) -> Releases {
        std::mem::take(&mut self.releases.lock())
    }

    pub(crate) fn restore_releases(&self, releases: Releases) {
        let mut waiting = self.releases.lock();
        for (id, commands) in releases {
            waiting.entry(id).or_default().extend(commands);
        }
    }

    /// Schedules another question to a sandbox that did not answer. The pause grows with every failure.
    pub(crate) fn note_unanswered(&self, id: &SandboxId, location: &str, now: Instant) {
        let mut unanswered = self.unanswered.lock();
        let failures = unanswered.get(id).map_or(0, |known| known.failures);
        let pause = FIRST_PAUSE.saturating_mul(1 << failures.min(16));
        let entry = Unanswered {
            location: location.to_owned(),
            failures: failures.saturating_add(1),
            due: now + pause.min(LONGEST_PAUSE),
        };
        unanswered.insert(id.clone(), entry);
    }

    pub(crate) fn note_answered(&self, id: &SandboxId) {
        self.unanswered.lock().remove(id);
    }

    /// The sandboxes of a location that are to be asked again now: a few, those that have waited longest.
    pub(crate) fn due(&self, location: &str, now: Instant) -> Vec<SandboxId> {
        let unanswered = self.unanswered.lock();
        let mut due: Vec<_> = unanswered
            .iter()
            .filter(|(_, known)| known.location == location && known.due <= now)
            .collect();
        due.sort_unstable_by_key(|(_, known)| known.due);
        let first = due.into_iter().take(MAX_DUE);
        first.map(|(id, _)| id.clone()).collect()
    }

    /// Notes that this server follows a command; false if it does already.
    pub(crate) fn follow(&self, id: &SandboxId, command: &str) -> bool {
        self.followed
            .lock()
            .insert((id.clone(), command.to_owned()))
    }

    pub(crate) fn unfollow(&self, id: &SandboxId, command: &str) {
        self.followed
            .lock()
            .remove(&(id.clone(), command.to_owned()));
    }

    pub(crate) fn is_followed(&self, id: &SandboxId, command: &str) -> bool {
        self.followed
            .lock()
            .contains(&(id.clone(), command.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_sandbox_claims_does_not_disturb_another() {
        let [one, two] = ["one", "two"].map(|id| id.parse::<SandboxId>().unwrap());
        let recorders = Recorders::default();
        assert!(recorders.follow(&one, "node/1"));
        assert!(!recorders.is_followed(&two, "node/1"));
        assert!(recorders.follow(&two, "node/1"));
        recorders.unfollow(&one, "node/1");
        assert!(recorders.is_followed(&two, "node/1"));
    }

    #[test]
    fn a_sandbox_that_does_not_answer_is_asked_again_after_a_growing_pause() {
        let id: SandboxId = "one".parse().unwrap();
        let recorders = Recorders::default();
        let now = Instant::now();
        let mut pauses = Vec::new();
        for _ in 0..40 {
            recorders.note_unanswered(&id, "here", now);
            let is_due = |seconds: &u64| {
                let then = now + Duration::from_secs(*seconds);
                !recorders.due("here", then).is_empty()
            };
            pauses.extend((0..100).find(is_due));
        }
        assert_eq!(pauses[..6], [2, 4, 8, 16, 32, 60]);
        assert_eq!((pauses.len(), pauses[39]), (40, 60));
        let later = now + Duration::from_secs(100);
        assert!(recorders.due("there", later).is_empty());
        recorders.note_answered(&id);
        assert!(recorders.due("here", later).is_empty());
    }

    #[test]
    fn every_location_is_adopted_once_per_request() {
        let recorders = Recorders::default();
        let first = recorders.pending_adoption("here").unwrap();
        recorders.finish_adoption("here", first);
        assert_eq!(recorders.pending_adoption("here"), None);
        assert!(recorders.pending_adoption("there").is_some());
        recorders.request_adoption();
        assert!(recorders.pending_adoption("here").is_some());
    }
}
