//! What this process knows about instances beyond the API.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::model::Sandbox;
use super::port_link::PortLink;
use crate::cloud_tools::ToolServerState;

/// How long an agent that answered is assumed to run.
const ANSWER_TTL: Duration = Duration::from_secs(10);
/// How long a link to a port is valid. A restart of the daemon changes it, possibly without a request of this server.
const LINK_TTL: Duration = Duration::from_secs(120);

/// All instances about which something is known.
#[derive(Debug, Default)]
pub(super) struct InstanceCache(Mutex<HashMap<String, Arc<CachedInstance>>>);

impl InstanceCache {
    /// The entry of an instance.
    pub(super) fn of(&self, id: &str) -> Arc<CachedInstance> {
        self.0.lock().entry(id.to_owned()).or_default().clone()
    }

    /// Ids of all entries.
    pub(super) fn ids(&self) -> Vec<String> {
        self.0.lock().keys().cloned().collect()
    }

    /// Forgets entries that existed before a list and are not in it: they were deleted elsewhere.
    pub(super) fn retain_listed(&self, before: Vec<String>, sandboxes: &[Sandbox]) {
        let ids: HashSet<_> = sandboxes
            .iter()
            .map(|sandbox| sandbox.id.as_str())
            .collect();
        let mut all = self.0.lock();
        for id in before {
            if !ids.contains(id.as_str()) {
                all.remove(&id);
            }
        }
    }

    /// Forgets a deleted instance.
    pub(super) fn forget(&self, id: &str) {
        self.0.lock().remove(id);
    }
}

/// What is known about one instance.
#[derive(Debug, Default)]
pub(super) struct CachedInstance {
    /// Held by the task that starts its agent.
    pub(super) starting: tokio::sync::Mutex<()>,
    /// Its tool server.
    pub(super) tools: Arc<ToolServerState>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    started_ms: Option<i64>,
    links: HashMap<u16, (Arc<PortLink>, Instant)>,
    answered: Option<Instant>,
}

impl CachedInstance {
    /// When its first process last started, if this process started it.
    pub(super) fn started_ms(&self) -> Option<i64> {
        self.inner.lock().started_ms
    }

    /// Forgets everything about the old processes: links and tool server.
    pub(super) fn has_started(&self, now_ms: i64) {
        self.tools.forget();
        let mut inner = self.inner.lock();
        *inner = Inner {
            started_ms: Some(now_ms),
            ..Inner::default()
        };
    }

    /// Forgets the links to its ports, which are no longer valid.
    pub(super) fn forget_links(&self) {
        let mut inner = self.inner.lock();
        inner.links.clear();
        inner.answered = None;
    }

    /// The link to a port, if it is recent enough.
    pub(super) fn link(&self, port: u16) -> Option<Arc<PortLink>> {
        let inner = self.inner.lock();
        let (link, since) = inner.links.get(&port)?;
        (since.elapsed() < LINK_TTL).then(|| link.clone())
    }

    /// Stores the link to a port; an equal link stays.
    pub(super) fn set_link(&self, port: u16, link: PortLink) -> Arc<PortLink> {
        let mut inner = self.inner.lock();
        let old = inner.links.remove(&port).map(|(old, _)| old);
        let link = match old {
            Some(old) if old.is_same(&link) => old,
            _ => Arc::new(link),
        };
        inner.links.insert(port, (link.clone(), Instant::now()));
        link
    }

    /// Whether its agent answered a moment ago.
    pub(super) fn answered_recently(&self) -> bool {
        let answered = self.inner.lock().answered;
        answered.is_some_and(|at| at.elapsed() < ANSWER_TTL)
    }

    pub(super) fn has_answered(&self) {
        self.inner.lock().answered = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deleted_instances_are_forgotten_and_new_ones_are_not() {
        let cache = InstanceCache::default();
        cache.of("a");
        cache.of("b");
        let before = cache.ids();
        cache.of("c");
        let sandboxes = serde_json::from_str::<Sandbox>(r#"{"id": "a"}"#).expect("a sandbox");
        cache.retain_listed(before, &[sandboxes]);
        let mut remaining = cache.ids();
        remaining.sort();
        assert_eq!(remaining, ["a", "c"]);
    }
}
