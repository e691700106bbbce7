//! Facts about sandboxes that need not be requested each time. Their number is bounded, and they are never written to disk.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use sandyard_agent_client::AgentClient;
use sandyard_core::SandboxState;

use super::convert;
use super::model::Sandbox;
use crate::cloud_tools::ToolServerState;

/// Maximum number of cached sandboxes: as many as a list can have.
const MAX_SANDBOXES: usize = 100_000;
/// Maximum length of a token or domain.
const MAX_TEXT: usize = 4096;

/// Credentials of a sandbox.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Keys {
    /// Token of its agent.
    pub(super) agent_token: Option<String>,
    /// Token of its ports.
    pub(super) traffic_token: Option<String>,
    /// What follows `{port}-{id}.` in the names of its ports, if that is not the default.
    pub(super) domain: Option<String>,
    /// Whether its agent requires a user name.
    pub(super) needs_user: bool,
}

sandyard_core::debug_fields!(Keys: domain);

impl Keys {
    fn of(sandbox: &Sandbox) -> Self {
        let text = |text: &Option<String>| {
            let is_text = |text: &&String| !text.is_empty() && text.len() <= MAX_TEXT;
            text.as_ref().filter(is_text).cloned()
        };
        Self {
            agent_token: text(&sandbox.envd_access_token),
            traffic_token: text(&sandbox.traffic_access_token),
            domain: text(&sandbox.domain).filter(|domain| is_domain(domain)),
            needs_user: sandbox.envd_version.as_deref().is_some_and(is_old),
        }
    }
}

fn is_domain(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:".contains(&byte);
    text.bytes().all(is_allowed)
}

/// COMPAT(e2b): agents before 0.4 have no default user.
fn is_old(version: &str) -> bool {
    let mut parts = version.trim_start_matches('v').split('.');
    let mut next = || parts.next().and_then(|part| part.parse::<u32>().ok());
    matches!((next(), next()), (Some(0), Some(minor)) if minor < 4)
}

/// The cached facts about one sandbox.
#[derive(Default)]
struct Entry {
    keys: Keys,
    /// The client of its agent, and the access token that it sends.
    client: Option<(AgentClient, String)>,
    /// Its tool server.
    tools: Arc<ToolServerState>,
    /// What its last pause retained, and the end of its timeout at that time.
    pause_state: Option<(SandboxState, Option<String>)>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Hides tokens.
        f.debug_struct("Entry")
            .field("keys", &self.keys)
            .field("resting", &self.pause_state)
            .finish_non_exhaustive()
    }
}

/// The cached facts about sandboxes of this installation.
#[derive(Debug, Default)]
pub(super) struct SandboxCache(Mutex<HashMap<String, Entry>>);

impl SandboxCache {
    /// Stores the facts of an answer about a sandbox of this installation.
    pub(super) fn record(&self, sandbox: &Sandbox) {
        let reported = Keys::of(sandbox);
        let mut all = self.0.lock();
        if all.len() >= MAX_SANDBOXES && !all.contains_key(&sandbox.sandbox_id) {
            // They are requested again when needed.
            all.clear();
        }
        let entry = all.entry(sandbox.sandbox_id.clone()).or_default();
        let keys = &mut entry.keys;
        let before = keys.clone();
        keys.agent_token = reported.agent_token.or(keys.agent_token.take());
        keys.traffic_token = reported.traffic_token.or(keys.traffic_token.take());
        keys.domain = reported.domain.or(keys.domain.take());
        keys.needs_user |= reported.needs_user;
        if *keys != before {
            entry.client = None;
        }
        match convert::state(sandbox) {
            SandboxState::Running => entry.pause_state = None,
            // Only a complete answer contains what the pause retained.
            state if sandbox.pause_mode.is_some() || sandbox.envd_access_token.is_some() => {
                entry.pause_state = Some((state, sandbox.end_at.clone()));
            }
            _ => {}
        }
    }

    /// The credentials of a sandbox, if it is known to belong to this installation.
    pub(super) fn keys(&self, id: &str) -> Option<Keys> {
        self.0.lock().get(id).map(|entry| entry.keys.clone())
    }

    /// The client of its agent with that access token, if there is one.
    pub(super) fn client(&self, id: &str, access_token: &str) -> Option<AgentClient> {
        let all = self.0.lock();
        let (client, token) = all.get(id)?.client.as_ref()?;
        (token == access_token).then(|| client.clone())
    }

    /// Stores a client of its agent.
    pub(super) fn set_client(&self, id: &str, access_token: &str, client: &AgentClient) {
        if let Some(entry) = self.0.lock().get_mut(id) {
            entry.client = Some((client.clone(), access_token.to_owned()));
        }
    }

    /// The state of its tool server.
    pub(super) fn tools(&self, id: &str) -> Arc<ToolServerState> {
        let all = self.0.lock();
        let tools = all.get(id).map(|entry| entry.tools.clone());
        tools.unwrap_or_default()
    }

    /// Whether a paused sandbox counts as stopped, if that is known for this pause.
    pub(super) fn pause_state(&self, sandbox: &Sandbox) -> Option<SandboxState> {
        let all = self.0.lock();
        let (state, end_at) = all.get(&sandbox.sandbox_id)?.pause_state.as_ref()?;
        (*end_at == sandbox.end_at).then_some(*state)
    }

    /// Ids of all entries.
    pub(super) fn ids(&self) -> Vec<String> {
        self.0.lock().keys().cloned().collect()
    }

    /// Forgets entries that existed before a list and are not in it: they were deleted elsewhere.
    pub(super) fn retain_listed(&self, before: Vec<String>, sandboxes: &[Sandbox]) {
        let ids: HashSet<_> = sandboxes
            .iter()
            .map(|sandbox| sandbox.sandbox_id.as_str())
            .collect();
        let mut all = self.0.lock();
        for id in before {
            if !ids.contains(id.as_str()) {
                all.remove(&id);
            }
        }
    }

    /// Forgets a sandbox.
    pub(super) fn forget(&self, id: &str) {
        self.0.lock().remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sandbox(json: &str) -> Sandbox {
        serde_json::from_str(json).expect("a sandbox")
    }

    #[test]
    fn tokens_are_stored_until_they_change_and_hidden_in_debug_output() {
        let cache = SandboxCache::default();
        cache.record(&sandbox(
            r#"{"sandboxID":"a","envdAccessToken":"first-secret","trafficAccessToken":"second-secret","envdVersion":"0.3.9"}"#,
        ));
        cache.record(&sandbox(r#"{"sandboxID":"a","domain":"x.test:1"}"#));
        cache.record(&sandbox(r#"{"sandboxID":"a","domain":"x test/"}"#));
        let keys = cache.keys("a").expect("cached");
        assert_eq!(keys.agent_token.as_deref(), Some("first-secret"));
        assert_eq!(keys.domain.as_deref(), Some("x.test:1"));
        assert!(keys.needs_user);
        let text = format!("{cache:?}");
        assert!(!text.contains("secret"), "{text}");
        cache.forget("a");
        assert!(cache.keys("a").is_none());
    }

    #[test]
    fn deleted_sandboxes_are_forgotten_and_new_ones_are_not() {
        let cache = SandboxCache::default();
        cache.record(&sandbox(r#"{"sandboxID":"a"}"#));
        cache.record(&sandbox(r#"{"sandboxID":"b"}"#));
        let before = cache.ids();
        cache.record(&sandbox(r#"{"sandboxID":"c"}"#));
        cache.retain_listed(before, &[sandbox(r#"{"sandboxID":"a"}"#)]);
        let is_cached = |id| cache.keys(id).is_some();
        assert!(is_cached("a") && !is_cached("b") && is_cached("c"));
    }

    #[test]
    fn the_pause_state_is_valid_for_one_pause_only() {
        let cache = SandboxCache::default();
        let entry = |end: &str| {
            sandbox(&format!(
                r#"{{"sandboxID":"a","state":"paused","endAt":"{end}"}}"#
            ))
        };
        assert_eq!(cache.pause_state(&entry("1")), None);
        cache.record(&sandbox(
            r#"{"sandboxID":"a","state":"paused","endAt":"1","pauseMode":"filesystem"}"#,
        ));
        assert_eq!(cache.pause_state(&entry("1")), Some(SandboxState::Stopped));
        assert_eq!(cache.pause_state(&entry("2")), None);
        cache.record(&sandbox(r#"{"sandboxID":"a","state":"running"}"#));
        assert_eq!(cache.pause_state(&entry("1")), None);
    }
}
