//! Translates between Daytona's types and the provider's.

use std::collections::BTreeMap;

use sandyard_core::{Limits, SandboxId, SandboxState};
use sandyard_provider::{Instance, InstanceSpec, TemplateInfo, Usage};

use super::error::single_line;
use super::limitations;
use super::model::{Sandbox, Snapshot, State, SystemMetrics};
use crate::date::parse_rfc3339_ms;
use crate::requested_limits;

/// Label: the sandbox that an instance was created for.
pub(super) const SANDBOX: &str = "sandyard.sandbox";
/// Label: the installation it belongs to.
pub(super) const INSTALLATION: &str = "sandyard.installation";
/// Label: the provider's location, because one account may have several.
const LOCATION: &str = "sandyard.place";
/// Label: the create was finished. Without it the creator did not get that far.
pub(super) const READY: &str = "sandyard.ready";
/// Label: the attempt that created it.
pub(super) const ATTEMPT: &str = "sandyard.attempt";
/// Label: the requested template.
const TEMPLATE: &str = "sandyard.template";
/// Label: the requested limits, see [`requested_limits`].
const REQUESTED_LIMITS: &str = "sandyard.limits";

const GIB: f64 = (1u64 << 30) as f64;

/// The labels of a new instance.
pub(super) fn labels(
    spec: &InstanceSpec,
    owner: &Ownership,
    attempt: &str,
) -> BTreeMap<String, String> {
    BTreeMap::from([
        (SANDBOX.to_owned(), spec.sandbox_id.to_string()),
        (INSTALLATION.to_owned(), owner.installation.clone()),
        (LOCATION.to_owned(), owner.location.clone()),
        (ATTEMPT.to_owned(), attempt.to_owned()),
        (TEMPLATE.to_owned(), spec.template.clone()),
        (
            REQUESTED_LIMITS.to_owned(),
            requested_limits::encode(&spec.limits),
        ),
    ])
}

/// Identifies the sandboxes of this installation.
#[derive(Debug)]
pub(super) struct Ownership {
    pub(super) installation: String,
    /// The provider's location.
    pub(super) location: String,
}

impl Ownership {
    /// Labels to filter lists by.
    pub(super) fn labels(&self) -> String {
        serde_json::json!({ INSTALLATION: self.installation, LOCATION: self.location }).to_string()
    }

    /// Whether a sandbox belongs to this installation and still exists.
    pub(super) fn is_owned(&self, sandbox: &Sandbox) -> bool {
        let label = |name: &str| sandbox.labels.get(name).map(String::as_str);
        sandbox.state != State::Destroyed
            && label(SANDBOX).is_some()
            && label(INSTALLATION) == Some(&self.installation)
            && label(LOCATION) == Some(&self.location)
    }
}

/// The instance of a sandbox. Daytona does not report `pids` and the last start.
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
        limitations: limitations::of(
            &sandbox,
            label(REQUESTED_LIMITS).map(String::as_str),
            &limits,
        ),
        limits,
        created_ms,
        started_ms: started_ms.or((created_ms > 0).then_some(created_ms)),
        reason: reason(&sandbox),
        id: sandbox.id,
    }
}

fn state(sandbox: &Sandbox) -> SandboxState {
    match reported_state(sandbox) {
        SandboxState::Deleting => SandboxState::Deleting,
        // Whatever its state, its create was not finished.
        _ if !sandbox.labels.contains_key(READY) => SandboxState::Creating,
        state => state,
    }
}

fn reported_state(sandbox: &Sandbox) -> SandboxState {
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
        // It returns to the state it was in.
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

/// Why it stopped without a request.
fn reason(sandbox: &Sandbox) -> Option<String> {
    let is_failed = matches!(sandbox.state, State::Error | State::BuildFailed);
    is_failed.then(|| failure(sandbox))
}

/// What failed, as Daytona reports it.
pub(super) fn failure(sandbox: &Sandbox) -> String {
    match sandbox.error_reason.as_deref().map(single_line) {
        Some(reason) if !reason.is_empty() => reason,
        _ => "Daytona reports no reason".to_owned(),
    }
}

/// Converts cores and GiB to limits.
pub(super) fn limits(cpu: f64, memory: f64, disk: f64, pids: u32) -> Limits {
    // Casts from floats saturate.
    Limits {
        memory_bytes: (memory * GIB) as u64,
        cpu_millis: (cpu * 1000.0) as u32,
        pids,
        disk_bytes: (disk * GIB) as u64,
    }
}

/// The template of a snapshot.
pub(super) fn template(snapshot: Snapshot) -> TemplateInfo {
    let is_active = snapshot
        .state
        .as_deref()
        .is_none_or(|state| state == "active");
    let kind = snapshot.source_sandbox_id.map(|_| "a snapshot".to_owned());
    TemplateInfo {
        // The account may belong to others, too.
        is_ours: false,
        created_ms: snapshot.created_at.as_deref().and_then(parse_rfc3339_ms),
        size_bytes: snapshot.size.map(|size| (size * GIB) as u64),
        note: match is_active {
            true => kind,
            false => Some(single_line(&snapshot.state.unwrap_or_default())),
        },
        name: snapshot.name,
    }
}

/// Current usage. The sandbox itself reports it.
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
            "id": "i", "state": state, "snapshot": "base", "errorReason": "no\nspace",
            "labels": {SANDBOX: "abc", INSTALLATION: "one", LOCATION: "here", READY: "yes", REQUESTED_LIMITS: "1073741824/1000/5"},
            "cpu": 1, "memory": 1, "disk": 3, "createdAt": "2026-01-02T03:04:05.678Z",
        });
        serde_json::from_value(value).expect("a sandbox")
    }

    #[test]
    fn every_state_is_converted() {
        use SandboxState::*;
        for (daytona_state, expected) in [
            ("pulling_snapshot", Creating),
            ("started", Running),
            ("snapshotting", Running),
            ("paused", Paused),
            ("archived", Stopped),
            ("error", Stopped),
            ("destroying", Deleting),
            ("something new", Creating),
        ] {
            assert_eq!(
                instance(sandbox(daytona_state), 7, None).state,
                expected,
                "{daytona_state}"
            );
        }
    }

    #[test]
    fn limits_that_the_snapshot_decided_are_reported() {
        let created = instance(sandbox("started"), 7, None);
        assert_eq!(created.created_ms, 1_767_323_045_678);
        assert_eq!(created.started_ms, Some(created.created_ms));
        assert_eq!((created.limits.pids, created.limits.cpu_millis), (7, 1000));
        assert_eq!(created.reason, None);
        assert_eq!(created.limitations.len(), 1, "{:?}", created.limitations);
        assert!(
            created.limitations[0].starts_with("disk is 3"),
            "{:?}",
            created.limitations
        );
        let mut bounded = sandbox("started");
        bounded.auto_destroy_at = Some("2026-02-01T00:00:00.000Z".to_owned());
        let limitations = instance(bounded, 7, None).limitations;
        assert!(
            limitations[1].contains("2026-02-01T00:00:00Z"),
            "{limitations:?}"
        );
        let failed = instance(sandbox("error"), 7, None);
        assert_eq!(failed.reason.as_deref(), Some("no space"));
    }

    #[test]
    fn only_labelled_sandboxes_are_owned() {
        let is_owned = |sandbox: &Sandbox, installation: &str, location: &str| {
            let (installation, location) = (installation.to_owned(), location.to_owned());
            let owner = Ownership {
                installation,
                location,
            };
            owner.is_owned(sandbox)
        };
        assert!(is_owned(&sandbox("started"), "one", "here"));
        assert!(!is_owned(&sandbox("started"), "two", "here"));
        assert!(!is_owned(&sandbox("started"), "one", "there"));
        assert!(!is_owned(&sandbox("destroyed"), "one", "here"));
        let mut unlabelled = sandbox("started");
        unlabelled.labels.remove(SANDBOX);
        assert!(!is_owned(&unlabelled, "one", "here"));
    }

    #[test]
    fn an_unfinished_sandbox_is_still_being_created() {
        for (daytona_state, expected) in [
            ("started", SandboxState::Creating),
            ("stopped", SandboxState::Creating),
            ("destroying", SandboxState::Deleting),
        ] {
            let mut unfinished = sandbox(daytona_state);
            unfinished.labels.remove(READY);
            assert_eq!(
                instance(unfinished, 7, None).state,
                expected,
                "{daytona_state}"
            );
        }
    }
}
