//! The row of a sandbox, and changes of it.

use std::collections::BTreeMap;
use std::fmt;

use sandyard_core::{Limits, SandboxId, SandboxStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What happens to a sandbox after its timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutAction {
    /// Pause it.
    Pause,
    /// End its processes and keep its files.
    Stop,
    /// Delete it.
    Delete,
}

/// What the timeout of a sandbox counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expiry {
    /// The last activity.
    Idle,
    /// The moment when it was last set, regardless of activity, as in E2B.
    Fixed,
}

/// A volume that is mounted in a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountedVolume {
    /// The id of the volume.
    pub volume_id: String,
    /// The name of the volume when it was mounted.
    pub name: String,
    /// The path inside the sandbox.
    pub path: String,
}

/// The operation that holds a claim on a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Creates it.
    Create,
    /// Pauses it.
    Pause,
    /// Resumes or starts it.
    Wake,
    /// Stops it.
    Stop,
    /// Deletes it.
    Delete,
    /// Copies its files into a snapshot or a fork.
    Copy,
    /// Makes row and instance agree.
    Reconcile,
    /// Changes its settings.
    Change,
}

/// The row of a sandbox.
#[derive(Clone, PartialEq)]
pub struct Sandbox {
    /// Its id.
    pub id: SandboxId,
    /// The name of its owner.
    pub owner: String,
    /// Another name for it, unique among its owner's sandboxes that are not deleted.
    pub alias: Option<String>,
    /// The name of its project, in the Docker dialect.
    pub project: Option<String>,
    /// The name of its provider.
    pub provider: String,
    /// Its location: see `ProviderInfo::location`.
    pub location: String,
    /// The id of its instance at the provider, once it has one.
    pub provider_id: Option<String>,
    /// The template that it was created from.
    pub template: String,
    /// Its status.
    pub status: SandboxStatus,
    /// The reason of its status, if it is not obvious.
    pub reason: Option<String>,
    /// Its resource limits.
    pub limits: Limits,
    /// Keys and values that the client chose.
    pub metadata: BTreeMap<String, String>,
    /// Its environment variables. They may be secrets: never shown, never logged.
    pub env: BTreeMap<String, String>,
    /// Its network policy with sealed header values; none for the default.
    pub network: Option<Value>,
    /// The names of the secrets that it may use, by the variable that holds each placeholder.
    pub secrets: BTreeMap<String, String>,
    /// Ports that the client named: `{"container": "host"}`, as in the Docker dialect.
    pub ports: BTreeMap<String, String>,
    /// Ports with public previews.
    pub public_ports: Vec<u16>,
    /// Its mounted volumes.
    pub mounts: Vec<MountedVolume>,
    /// The token that its agent requires. A secret.
    pub access_token: String,
    /// Its timeout, in seconds.
    pub timeout_s: i64,
    /// What happens after the timeout.
    pub timeout_action: TimeoutAction,
    /// What the timeout counts from.
    pub expiry: Expiry,
    /// Whether a request wakes it when it is paused.
    pub is_auto_resumed: bool,
    /// What its provider cannot do or enforce for it.
    pub limitations: Vec<String>,
    /// When its create was requested.
    pub created_ms: i64,
    /// When its processes last started.
    pub started_ms: Option<i64>,
    /// When it was last paused or stopped; none while it runs.
    pub stopped_ms: Option<i64>,
    /// When it was last used.
    pub last_activity_ms: i64,
    /// When its time is over, for [`Expiry::Fixed`].
    pub fixed_end_ms: Option<i64>,
    /// When it was deleted.
    pub deleted_ms: Option<i64>,
    /// Counts up with every commit.
    pub version: i64,
    /// The operation in progress, its holder, and when the claim ends.
    pub claim: Option<(Operation, String, i64)>,
}

sandyard_core::debug_fields!(Sandbox: id, owner, status, provider_id, version, claim);

/// A sandbox to insert. It starts as `creating`, version 1, claimed by `holder` for [`Operation::Create`].
#[derive(Clone, PartialEq)]
pub struct NewSandbox {
    /// The row. Its `status`, `version` and `claim` are ignored.
    pub sandbox: Sandbox,
    /// The holder of its claim.
    pub holder: String,
    /// When its claim ends.
    pub claimed_until_ms: i64,
}

impl fmt::Debug for NewSandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewSandbox")
            .field("sandbox", &self.sandbox)
            .field("holder", &self.holder)
            .field("claimed_until_ms", &self.claimed_until_ms)
            .finish()
    }
}

/// Lets a client repeat a create without creating two sandboxes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The client's key; unique per owner.
    pub key: String,
    /// A digest of the request, which tells a repetition from a different request with the same key.
    pub fingerprint: String,
}

/// The result of an insert.
#[derive(Clone, Debug, PartialEq)]
pub enum InsertOutcome {
    /// The row is inserted.
    Inserted,
    /// The same request was made before. This is the id of its sandbox, which may still be `creating`.
    Repeated(SandboxId),
    /// The key belongs to another request.
    KeyReused,
    /// The owner has reached its quota.
    OverQuota {
        /// The owner's number of sandboxes.
        count: i64,
    },
    /// Another sandbox of the owner's has the alias.
    AliasTaken,
    /// A volume of it is deleted, or being deleted.
    VolumeGone {
        /// The id of the volume.
        id: String,
    },
}

/// The result of a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimOutcome {
    /// The holder may change the sandbox until the claim ends. This is its current row.
    Claimed(Box<Sandbox>),
    /// Another operation holds the claim.
    Busy {
        /// That operation.
        operation: Operation,
        /// Its holder.
        holder: String,
        /// When its claim ends.
        until_ms: i64,
    },
    /// There is no such row.
    Missing,
}

/// The changes of a commit. A field that is none stays unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SandboxPatch {
    /// The new status.
    pub status: Option<SandboxStatus>,
    /// The reason of the status; `Some(None)` clears it.
    pub reason: Option<Option<String>>,
    /// The new provider, if the create moves to another one.
    pub provider: Option<String>,
    /// The new location. The timer keeps its location unless the same commit sets it.
    pub location: Option<String>,
    /// The template at the new provider.
    pub template: Option<String>,
    /// The id of its instance.
    pub provider_id: Option<String>,
    /// The limits that its instance has.
    pub limits: Option<Limits>,
    /// What its provider cannot do or enforce for it.
    pub limitations: Option<Vec<String>>,
    /// When its processes started.
    pub started_ms: Option<i64>,
    /// When it was paused or stopped; `Some(None)` if it runs.
    pub stopped_ms: Option<Option<i64>>,
    /// When it was last used. Never set back.
    pub last_activity_ms: Option<i64>,
    /// The new timeout, in seconds.
    pub timeout_s: Option<i64>,
    /// What happens after the timeout.
    pub timeout_action: Option<TimeoutAction>,
    /// What the timeout counts from.
    pub expiry: Option<Expiry>,
    /// When its time is over, for [`Expiry::Fixed`].
    pub fixed_end_ms: Option<Option<i64>>,
    /// Whether a request wakes it when it is paused.
    pub is_auto_resumed: Option<bool>,
    /// When it was deleted.
    pub deleted_ms: Option<i64>,
    /// The new alias; `Some(None)` removes it. Fails with [`StoreError::AliasTaken`](crate::StoreError::AliasTaken) if another
    /// sandbox of the owner has it.
    pub alias: Option<Option<String>>,
    /// Keys and values that the client chose.
    pub metadata: Option<BTreeMap<String, String>>,
    /// The network policy.
    pub network: Option<Option<Value>>,
    /// Ports with public previews.
    pub public_ports: Option<Vec<u16>>,
    /// Whether to clear `env`, `secrets` and `access_token`, as for a deleted sandbox.
    pub forget_secrets: bool,
}

/// Which sandboxes to list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SandboxFilter {
    /// Only those of this owner.
    pub owner: Option<String>,
    /// Only those of this project.
    pub project: Option<String>,
    /// Only those with one of these statuses; empty for all but `deleted`.
    pub statuses: Vec<SandboxStatus>,
    /// Only those whose metadata has all these values.
    pub metadata: BTreeMap<String, String>,
    /// Only those at this location.
    pub location: Option<String>,
    /// Only those that may use a secret of this name.
    pub secret: Option<String>,
    /// Only those with this volume.
    pub volume_id: Option<String>,
    /// Only those created from this template.
    pub template: Option<String>,
    /// Only those created at this time or later.
    pub created_from_ms: Option<i64>,
    /// Only those whose claim ended before this without a commit.
    pub claim_ended_before_ms: Option<i64>,
    /// Only those stopped or paused before this.
    pub stopped_before_ms: Option<i64>,
    /// Whether to list the oldest first instead of the newest.
    pub is_oldest_first: bool,
    /// The cursor of an earlier page in the same order, to continue after it.
    pub cursor: Option<String>,
    /// Maximum number of sandboxes; 0 for 1,000.
    pub limit: usize,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// The cursor of the next page; none on the last page.
    pub next: Option<String>,
}
