//! What this process knows of instances beyond what the API tells.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::model::Sandbox;
use super::port_link::PortLink;
use crate::cloud_tools::ToolServerState;

/// How long an agent that answered is believed to be up.
const FRESH: Duration = Duration::from_secs(10);
/// How long the way to a port is believed to hold. The daemon's restart changes it, and we may not have been asked for that.
const LINK_LIFE: Duration = Duration::from_secs(120);

/// All instances that something is known of.
#[derive(Debug, Default)]
pub(super) struct InstanceCache(Mutex<HashMap<String, Arc<CachedInstance>>>);

impl InstanceCache {
    /// What is known of one.
    pub(super) fn of(&self, id: &str) -> Arc<CachedInstance> {
        lock(&self.0).entry(id.to_owned()).or_default().clone()
    }

    /// Those that something is known of.
    pub(super) fn ids(&self) -> Vec<String> {
        lock(&self.0).keys().cloned().collect()
    }

    /// Forgets those that were known before all were listed and are not among them: others have deleted them.
    pub(super) fn forget_gone(&self, before: Vec<String>, listed: &[Sandbox]) {
        let there: HashSet<_> = listed.iter().map(|one| one.id.as_str()).collect();
        let mut all = lock(&self.0);
        for id in before {
            if !there.contains(id.as_str()) {
                all.remove(&id);
            }
        }
    }

    /// Forgets one that is gone.
    pub(super) fn forget(&self, id: &str) {
        lock(&self.0).remove(id);
    }
}

/// What is known of one instance.
#[derive(Debug, Default)]
pub(super) struct CachedInstance {
    /// Held by whoever starts its agent.
    pub(super) starting: tokio::sync::Mutex<()>,
    /// Its tool server.
    pub(super) tools: Arc<ToolServerState>,
    facts: Mutex<Facts>,
}

#[derive(Debug, Default)]
struct Facts {
    started_ms: Option<i64>,
    links: HashMap<u16, (Arc<PortLink>, Instant)>,
    answered: Option<Instant>,
}

impl CachedInstance {
    /// When its first process last started, as far as this process did it.
    pub(super) fn started_ms(&self) -> Option<i64> {
        lock(&self.facts).started_ms
    }

    /// Its processes are new, and so are the ways to its ports.
    pub(super) fn has_started(&self, now_ms: i64) {
        self.tools.forget();
        let mut facts = lock(&self.facts);
        *facts = Facts {
            started_ms: Some(now_ms),
            ..Facts::default()
        };
    }

    /// The ways to its ports no longer hold.
    pub(super) fn forget_links(&self) {
        let mut facts = lock(&self.facts);
        facts.links.clear();
        facts.answered = None;
    }

    /// The way to a port, if it is known well enough.
    pub(super) fn link(&self, port: u16) -> Option<Arc<PortLink>> {
        let facts = lock(&self.facts);
        let (link, since) = facts.links.get(&port)?;
        (since.elapsed() < LINK_LIFE).then(|| link.clone())
    }

    /// Takes note of the way to a port; the one that was known is kept where it is the same.
    pub(super) fn set_link(&self, port: u16, link: PortLink) -> Arc<PortLink> {
        let mut facts = lock(&self.facts);
        let old = facts.links.remove(&port).map(|(old, _)| old);
        let link = match old {
            Some(old) if old.is_same(&link) => old,
            _ => Arc::new(link),
        };
        facts.links.insert(port, (link.clone(), Instant::now()));
        link
    }

    /// Says whether its agent answered a moment ago.
    pub(super) fn is_fresh(&self) -> bool {
        let answered = lock(&self.facts).answered;
        answered.is_some_and(|at| at.elapsed() < FRESH)
    }

    pub(super) fn has_answered(&self) {
        lock(&self.facts).answered = Some(Instant::now());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_deleted_is_forgotten_and_what_is_new_is_not() {
        let known = InstanceCache::default();
        known.of("a");
        known.of("b");
        let before = known.ids();
        known.of("c");
        let listed = serde_json::from_str::<Sandbox>(r#"{"id": "a"}"#).expect("a sandbox");
        known.forget_gone(before, &[listed]);
        let mut left = known.ids();
        left.sort();
        assert_eq!(left, ["a", "c"]);
    }
}
