//! Translates between the engine's types and the provider's.

use std::collections::BTreeMap;

use sandyard_core::SandboxId;
use sandyard_engine::{
    ChangeKind as EngineChangeKind, Diff, ForkSpec, MountSpec, SandboxInfo, SandboxSpec,
    SandboxStats, Template, TemplateKind,
};
use sandyard_provider::{Change, ChangeKind, Instance, InstanceSpec, Mount, TemplateInfo, Usage};

/// Label: the sandbox that an instance was created for.
pub(super) const SANDBOX: &str = "sandyard.sandbox";
/// Label: the installation it belongs to.
pub(super) const INSTALLATION: &str = "sandyard.installation";
/// Label: the attempt that created it.
const ATTEMPT: &str = "sandyard.attempt";

/// The labels of an instance.
#[derive(Clone, Debug)]
pub(super) struct InstanceLabels {
    pub(super) sandbox_id: SandboxId,
    pub(super) installation: String,
    pub(super) attempt: String,
}

impl InstanceLabels {
    fn labels(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            (SANDBOX.to_owned(), self.sandbox_id.to_string()),
            (INSTALLATION.to_owned(), self.installation.clone()),
            (ATTEMPT.to_owned(), self.attempt.clone()),
        ])
    }

    /// Whether this attempt created the sandbox.
    pub(super) fn match_sandbox(&self, info: &SandboxInfo) -> bool {
        info.labels == self.labels()
    }
}

/// Whether a sandbox of the engine belongs to an installation.
pub(super) fn is_owned(info: &SandboxInfo, installation: &str) -> bool {
    !info.ephemeral
        && info.labels.contains_key(SANDBOX)
        && info.labels.get(INSTALLATION).map(String::as_str) == Some(installation)
}

pub(super) fn sandbox_spec(spec: &InstanceSpec, labels: &InstanceLabels) -> SandboxSpec {
    SandboxSpec {
        template: spec.template.clone(),
        limits: spec.limits.clone(),
        env: spec.env.clone(),
        access_token: Some(spec.access_token.clone()),
        hostname: spec.hostname.clone(),
        labels: labels.labels(),
        mounts: spec.mounts.iter().map(mount).collect(),
        ephemeral: false,
    }
}

fn mount(mount: &Mount) -> MountSpec {
    MountSpec {
        volume: mount.volume.clone(),
        path: mount.path.clone(),
    }
}

pub(super) fn fork_spec(spec: &InstanceSpec, labels: &InstanceLabels) -> ForkSpec {
    ForkSpec {
        env: Some(spec.env.clone()),
        access_token: Some(spec.access_token.clone()),
        hostname: spec.hostname.clone(),
        labels: labels.labels(),
    }
}

pub(super) fn instance(info: SandboxInfo) -> Instance {
    let sandbox_id = info.labels.get(SANDBOX);
    Instance {
        sandbox_id: sandbox_id.and_then(|id| id.parse().ok()),
        id: info.id.to_string(),
        state: info.state,
        template: info.template,
        limits: info.limits,
        created_ms: millis(info.created_ms),
        started_ms: info.started_ms.map(millis),
        reason: info.reason,
        limitations: info.limitations,
    }
}

pub(super) fn usage(stats: SandboxStats) -> Usage {
    Usage {
        memory_bytes: stats.memory_bytes,
        memory_cache_bytes: stats.memory_cache_bytes,
        cpu_usage_us: stats.cpu_usage_us,
        pids: stats.pids,
        disk_bytes: Some(stats.disk_bytes),
        oom_kills: stats.oom_kills,
    }
}

pub(super) fn template(template: Template) -> TemplateInfo {
    let note = match template.kind {
        TemplateKind::Host => Some("the programs of this host".to_owned()),
        TemplateKind::Snapshot { base } => Some(format!("from a sandbox of `{base}`")),
        _ => None,
    };
    TemplateInfo {
        is_ours: true,
        name: template.name,
        created_ms: Some(millis(template.created_unix_ms)),
        size_bytes: template.size_bytes,
        note,
    }
}

pub(super) fn changes(diff: Diff) -> Vec<Change> {
    let change = |change: sandyard_engine::Change| Change {
        path: change.path.to_string_lossy().into_owned(),
        kind: match change.kind {
            EngineChangeKind::Added => ChangeKind::Added,
            EngineChangeKind::Deleted => ChangeKind::Deleted,
            EngineChangeKind::Modified => ChangeKind::Modified,
        },
    };
    diff.changes.into_iter().map(change).collect()
}

fn millis(since_1970: u64) -> i64 {
    i64::try_from(since_1970).unwrap_or(i64::MAX)
}
