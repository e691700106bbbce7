//! What is known of sandboxes, so that it need not be asked for each time. Never more than so many, and never on disk.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandyard_agent_client::AgentClient;
use sandyard_core::SandboxState;

use super::convert;
use super::model::Sandbox;
use crate::cloud_tools::ToolServerState;

/// Most sandboxes that are remembered: as many as a list can have.
const MOST: usize = 100_000;
/// Longest token or domain that is believed to be one.
const MAX_TEXT: usize = 4096;

/// What opens a sandbox.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Keys {
    /// What its agent asks for.
    pub(super) agent_token: Option<String>,
    /// What its ports ask for.
    pub(super) traffic_token: Option<String>,
    /// What follows `{port}-{id}.` in the names of its ports, where that is not the usual.
    pub(super) domain: Option<String>,
    /// Whether its agent wants to be told a user.
    pub(super) needs_user: bool,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys")
            .field("domain", &self.domain)
            .finish_non_exhaustive()
    }
}

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
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:".contains(&byte);
    text.bytes().all(is_plain)
}

/// COMPAT(e2b): agents before 0.4 have no default user.
fn is_old(version: &str) -> bool {
    let mut parts = version.trim_start_matches('v').split('.');
    let mut next = || parts.next().and_then(|part| part.parse::<u32>().ok());
    matches!((next(), next()), (Some(0), Some(minor)) if minor < 4)
}

/// What is remembered of one sandbox.
#[derive(Default)]
struct Entry {
    keys: Keys,
    /// The client of its agent, and the access token it was made for.
    client: Option<(AgentClient, String)>,
    /// Its tool server.
    tools: Arc<ToolServerState>,
    /// What it rests as, and the end it had when that was looked at.
    resting: Option<(SandboxState, Option<String>)>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tokens are nobody's to see.
        f.debug_struct("Entry")
            .field("keys", &self.keys)
            .field("resting", &self.resting)
            .finish_non_exhaustive()
    }
}

/// What is known of sandboxes of ours.
#[derive(Debug, Default)]
pub(super) struct SandboxCache(Mutex<HashMap<String, Entry>>);

impl SandboxCache {
    /// Remembers what an answer about a sandbox of ours tells.
    pub(super) fn note(&self, sandbox: &Sandbox) {
        let told = Keys::of(sandbox);
        let mut all = self.lock();
        if all.len() >= MOST && !all.contains_key(&sandbox.sandbox_id) {
            // They are asked for again.
            all.clear();
        }
        let entry = all.entry(sandbox.sandbox_id.clone()).or_default();
        let keys = &mut entry.keys;
        let before = keys.clone();
        keys.agent_token = told.agent_token.or(keys.agent_token.take());
        keys.traffic_token = told.traffic_token.or(keys.traffic_token.take());
        keys.domain = told.domain.or(keys.domain.take());
        keys.needs_user |= told.needs_user;
        if *keys != before {
            entry.client = None;
        }
        match convert::state(sandbox) {
            SandboxState::Running => entry.resting = None,
            // Only an answer that is all about it tells what its pause kept.
            state if sandbox.pause_mode.is_some() || sandbox.envd_access_token.is_some() => {
                entry.resting = Some((state, sandbox.end_at.clone()));
            }
            _ => {}
        }
    }

    /// What opens a sandbox, if it is known to be ours.
    pub(super) fn keys(&self, id: &str) -> Option<Keys> {
        self.lock().get(id).map(|entry| entry.keys.clone())
    }

    /// The client of its agent, if there is one for whoever has that access token.
    pub(super) fn client(&self, id: &str, access_token: &str) -> Option<AgentClient> {
        let all = self.lock();
        let (client, token) = all.get(id)?.client.as_ref()?;
        (token == access_token).then(|| client.clone())
    }

    /// Keeps it for the next who asks.
    pub(super) fn keep_client(&self, id: &str, access_token: &str, client: &AgentClient) {
        if let Some(entry) = self.lock().get_mut(id) {
            entry.client = Some((client.clone(), access_token.to_owned()));
        }
    }

    /// What is known of its tool server.
    pub(super) fn tools(&self, id: &str) -> Arc<ToolServerState> {
        let all = self.lock();
        let known = all.get(id).map(|entry| entry.tools.clone());
        known.unwrap_or_default()
    }

    /// What a sandbox rests as, if that was looked at since it rests.
    pub(super) fn resting(&self, sandbox: &Sandbox) -> Option<SandboxState> {
        let all = self.lock();
        let (state, end_at) = all.get(&sandbox.sandbox_id)?.resting.as_ref()?;
        (*end_at == sandbox.end_at).then_some(*state)
    }

    /// Those that something is known of.
    pub(super) fn ids(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// Forgets those that were known before all were listed and are not among them: others have deleted them.
    pub(super) fn forget_gone(&self, before: Vec<String>, listed: &[Sandbox]) {
        let there: HashSet<_> = listed.iter().map(|one| one.sandbox_id.as_str()).collect();
        let mut all = self.lock();
        for id in before {
            if !there.contains(id.as_str()) {
                all.remove(&id);
            }
        }
    }

    /// Forgets a sandbox.
    pub(super) fn forget(&self, id: &str) {
        self.lock().remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sandbox(json: &str) -> Sandbox {
        serde_json::from_str(json).expect("a sandbox")
    }

    #[test]
    fn tokens_are_kept_until_others_are_told_and_never_shown() {
        let known = SandboxCache::default();
        known.note(&sandbox(
            r#"{"sandboxID":"a","envdAccessToken":"first-secret","trafficAccessToken":"second-secret","envdVersion":"0.3.9"}"#,
        ));
        known.note(&sandbox(r#"{"sandboxID":"a","domain":"x.test:1"}"#));
        known.note(&sandbox(r#"{"sandboxID":"a","domain":"x test/"}"#));
        let keys = known.keys("a").expect("known");
        assert_eq!(keys.agent_token.as_deref(), Some("first-secret"));
        assert_eq!(keys.domain.as_deref(), Some("x.test:1"));
        assert!(keys.needs_user);
        let shown = format!("{known:?}");
        assert!(!shown.contains("secret"), "{shown}");
        known.forget("a");
        assert!(known.keys("a").is_none());
    }

    #[test]
    fn what_others_deleted_is_forgotten_and_what_is_new_is_not() {
        let known = SandboxCache::default();
        known.note(&sandbox(r#"{"sandboxID":"a"}"#));
        known.note(&sandbox(r#"{"sandboxID":"b"}"#));
        let before = known.ids();
        known.note(&sandbox(r#"{"sandboxID":"c"}"#));
        known.forget_gone(before, &[sandbox(r#"{"sandboxID":"a"}"#)]);
        let is_known = |id| known.keys(id).is_some();
        assert!(is_known("a") && !is_known("b") && is_known("c"));
    }

    #[test]
    fn what_it_rests_as_is_believed_for_this_rest_only() {
        let known = SandboxCache::default();
        let listed = |end: &str| {
            sandbox(&format!(
                r#"{{"sandboxID":"a","state":"paused","endAt":"{end}"}}"#
            ))
        };
        assert_eq!(known.resting(&listed("1")), None);
        known.note(&sandbox(
            r#"{"sandboxID":"a","state":"paused","endAt":"1","pauseMode":"filesystem"}"#,
        ));
        assert_eq!(known.resting(&listed("1")), Some(SandboxState::Stopped));
        assert_eq!(known.resting(&listed("2")), None);
        known.note(&sandbox(r#"{"sandboxID":"a","state":"running"}"#));
        assert_eq!(known.resting(&listed("1")), None);
    }
}
