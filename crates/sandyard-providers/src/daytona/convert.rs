//! Daytona's words and ours.

use std::collections::BTreeMap;

use sandyard_core::{Limits, SandboxId, SandboxState};
use sandyard_provider::{Instance, InstanceSpec, TemplateInfo, Usage};

use super::error::tidy;
use super::limitations;
use super::model::{Sandbox, Snapshot, State, SystemMetrics};
use crate::date::parse_rfc3339_ms;
use crate::requested_limits;

/// Label: the sandbox an instance was made for.
pub(super) const SANDBOX: &str = "sandyard.sandbox";
/// Label: the installation it belongs to.
pub(super) const INSTALLATION: &str = "sandyard.installation";
/// Label: where that is, as the provider's location says: one account has several.
const PLACE: &str = "sandyard.place";
/// Label: everything that belongs into it is in it. Without it whoever made it did not get that far.
pub(super) const READY: &str = "sandyard.ready";
/// Label: which attempt to make it made it.
pub(super) const ATTEMPT: &str = "sandyard.attempt";
/// Label: what it was made from, as its maker said.
const TEMPLATE: &str = "sandyard.template";
/// Label: the limits its maker asked for, see `asked`.
const ASKED: &str = "sandyard.limits";

const GIB: f64 = (1u64 << 30) as f64;

/// What is written on an instance.
pub(super) fn labels(
    spec: &InstanceSpec,
    whose: &Ownership,
    attempt: &str,
) -> BTreeMap<String, String> {
    BTreeMap::from([
        (SANDBOX.to_owned(), spec.sandbox_id.to_string()),
        (INSTALLATION.to_owned(), whose.installation.clone()),
        (PLACE.to_owned(), whose.place.clone()),
        (ATTEMPT.to_owned(), attempt.to_owned()),
        (TEMPLATE.to_owned(), spec.template.clone()),
        (ASKED.to_owned(), requested_limits::encode(&spec.limits)),
    ])
}

/// Ownership sandboxes are ours.
#[derive(Debug)]
pub(super) struct Ownership {
    pub(super) installation: String,
    /// The provider's location.
    pub(super) place: String,
}

impl Ownership {
    /// Labels to ask for.
    pub(super) fn labels(&self) -> String {
        serde_json::json!({ INSTALLATION: self.installation, PLACE: self.place }).to_string()
    }

    /// Says whether a sandbox of theirs is one of ours, and still there.
    pub(super) fn is_of(&self, sandbox: &Sandbox) -> bool {
        let label = |name: &str| sandbox.labels.get(name).map(String::as_str);
        sandbox.state != State::Destroyed
            && label(SANDBOX).is_some()
            && label(INSTALLATION) == Some(&self.installation)
            && label(PLACE) == Some(&self.place)
    }
}

/// What we tell of one of theirs; `pids` and when it last started are not known there.
pub(super) fn instance(sandbox: Sandbox, pids: u32, started_ms: Option<i64>) -> Instance {
    let created_ms = sandbox
        .created_at
        .as_deref()
        .and_then(parse_rfc3339_ms)
        .unwrap_or(0);
    let limits = limits(sandbox.cpu, sandbox.memory, sandbox.disk, pids);
    let state = state(&sandbox);
    let label = |name: &str| sandbox.labels.get(name);
    let template = label(TEMPLATE).or(sandbox.snapshot.as_ref());
    Instance {
        sandbox_id: label(SANDBOX).and_then(|id| id.parse::<SandboxId>().ok()),
        state,
        template: template.cloned().unwrap_or_default(),
        limitations: limitations::of(&sandbox, label(ASKED).map(String::as_str), &limits),
        limits,
        created_ms,
        started_ms: started_ms.or((created_ms > 0).then_some(created_ms)),
        reason: reason(&sandbox),
        id: sandbox.id,
    }
}

fn state(sandbox: &Sandbox) -> SandboxState {
    match told_state(sandbox) {
        SandboxState::Deleting => SandboxState::Deleting,
        // Whatever it does: its maker was not done with it.
        _ if !sandbox.labels.contains_key(READY) => SandboxState::Creating,
        state => state,
    }
}

fn told_state(sandbox: &Sandbox) -> SandboxState {
    let is_to_stop = matches!(
        sandbox.desired_state.as_deref(),
        Some("stopped" | "archived")
    );
    match sandbox.state {
        State::Creating
        | State::PendingBuild
        | State::BuildingSnapshot
        | State::PullingSnapshot
        | State::Unknown => SandboxState::Creating,
        // It goes on in the state it was in.
        State::Resizing | State::Snapshotting | State::Forking if is_to_stop => {
            SandboxState::Stopped
        }
        State::Started
        | State::Pausing
        | State::Resizing
        | State::Snapshotting
        | State::Forking => SandboxState::Running,
        State::Paused | State::Resuming => SandboxState::Paused,
        State::Starting
        | State::Restoring
        | State::Stopping
        | State::Stopped
        | State::Archiving
        | State::Archived
        | State::Error
        | State::BuildFailed => SandboxState::Stopped,
        State::Destroying | State::Destroyed => SandboxState::Deleting,
    }
}

/// Why it does not run though nobody asked it not to.
fn reason(sandbox: &Sandbox) -> Option<String> {
    let is_failed = matches!(sandbox.state, State::Error | State::BuildFailed);
    is_failed.then(|| failure(sandbox))
}

/// What went wrong with it, in its own words.
pub(super) fn failure(sandbox: &Sandbox) -> String {
    match sandbox.error_reason.as_deref().map(tidy) {
        Some(reason) if !reason.is_empty() => reason,
        _ => "Daytona does not say why".to_owned(),
    }
}

/// Their cores and GiB as our limits.
pub(super) fn limits(cpu: f64, memory: f64, disk: f64, pids: u32) -> Limits {
    // Casts from floats stay within the bounds of the integer.
    Limits {
        memory_bytes: (memory * GIB) as u64,
        cpu_millis: (cpu * 1000.0) as u32,
        pids,
        disk_bytes: (disk * GIB) as u64,
    }
}

/// What we tell of a snapshot.
pub(super) fn template(snapshot: Snapshot) -> TemplateInfo {
    let is_active = snapshot
        .state
        .as_deref()
        .is_none_or(|state| state == "active");
    let kind = snapshot.source_sandbox_id.map(|_| "a snapshot".to_owned());
    TemplateInfo {
        // The account may be that of others too.
        is_ours: false,
        created_ms: snapshot.created_at.as_deref().and_then(parse_rfc3339_ms),
        size_bytes: snapshot.size.map(|size| (size * GIB) as u64),
        note: match is_active {
            true => kind,
            false => Some(tidy(&snapshot.state.unwrap_or_default())),
        },
        name: snapshot.name,
    }
}

/// What is used now, told from inside and believed as such.
pub(super) fn usage(metrics: &SystemMetrics) -> Usage {
    let cache = metrics.mem_cache;
    Usage {
        memory_bytes: metrics
            .mem_used
            .map(|used| used.saturating_add(cache.unwrap_or(0))),
        memory_cache_bytes: cache,
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sandbox(state: &str) -> Sandbox {
        let value = json!({
            "id": "i", "state": state, "snapshot": "base", "errorReason": "no\nroom",
            "labels": {SANDBOX: "abc", INSTALLATION: "mine", PLACE: "here", READY: "yes", ASKED: "1073741824/1000/5"},
            "cpu": 1, "memory": 1, "disk": 3, "createdAt": "2026-01-02T03:04:05.678Z",
        });
        serde_json::from_value(value).expect("a sandbox")
    }

    #[test]
    fn every_state_has_one_of_ours() {
        use SandboxState::*;
        for (theirs, ours) in [
            ("pulling_snapshot", Creating),
            ("started", Running),
            ("snapshotting", Running),
            ("paused", Paused),
            ("archived", Stopped),
            ("error", Stopped),
            ("destroying", Deleting),
            ("something new", Creating),
        ] {
            assert_eq!(instance(sandbox(theirs), 7, None).state, ours, "{theirs}");
        }
    }

    #[test]
    fn an_instance_tells_what_its_snapshot_decided() {
        let made = instance(sandbox("started"), 7, None);
        assert_eq!(made.created_ms, 1_767_323_045_678);
        assert_eq!(made.started_ms, Some(made.created_ms));
        assert_eq!((made.limits.pids, made.limits.cpu_millis), (7, 1000));
        assert_eq!(made.reason, None);
        assert_eq!(made.limitations.len(), 1, "{:?}", made.limitations);
        assert!(
            made.limitations[0].starts_with("disk is 3"),
            "{:?}",
            made.limitations
        );
        let mut bounded = sandbox("started");
        bounded.auto_destroy_at = Some("2026-02-01T00:00:00.000Z".to_owned());
        let limitations = instance(bounded, 7, None).limitations;
        assert!(
            limitations[1].contains("2026-02-01T00:00:00Z"),
            "{limitations:?}"
        );
        let failed = instance(sandbox("error"), 7, None);
        assert_eq!(failed.reason.as_deref(), Some("no room"));
    }

    #[test]
    fn only_what_carries_our_labels_is_ours() {
        let is_of = |sandbox: &Sandbox, installation: &str, place: &str| {
            let (installation, place) = (installation.to_owned(), place.to_owned());
            let whose = Ownership {
                installation,
                place,
            };
            whose.is_of(sandbox)
        };
        assert!(is_of(&sandbox("started"), "mine", "here"));
        assert!(!is_of(&sandbox("started"), "theirs", "here"));
        assert!(!is_of(&sandbox("started"), "mine", "elsewhere"));
        assert!(!is_of(&sandbox("destroyed"), "mine", "here"));
        let mut bare = sandbox("started");
        bare.labels.remove(SANDBOX);
        assert!(!is_of(&bare, "mine", "here"));
    }

    #[test]
    fn what_was_never_finished_is_still_being_made() {
        for (theirs, ours) in [
            ("started", SandboxState::Creating),
            ("stopped", SandboxState::Creating),
            ("destroying", SandboxState::Deleting),
        ] {
            let mut half = sandbox(theirs);
            half.labels.remove(READY);
            assert_eq!(instance(half, 7, None).state, ours, "{theirs}");
        }
    }
}
