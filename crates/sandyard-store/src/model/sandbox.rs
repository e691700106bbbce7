//! A sandbox, and the words to change one.

use std::collections::BTreeMap;
use std::fmt;

use sandyard_core::{Limits, SandboxId, SandboxStatus};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What happens when a sandbox's time is over.
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

/// When a sandbox's time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expiry {
    /// So long after the last activity.
    Idle,
    /// So long after it was last set, whatever happens in between (E2B's way).
    Fixed,
}

/// A volume in a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountedVolume {
    /// Which.
    pub volume_id: String,
    /// Its name, as its owner knew it then.
    pub name: String,
    /// Where, as seen inside.
    pub path: String,
}

/// What somebody is action to a sandbox right now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Making it.
    Create,
    /// Freezing it.
    Pause,
    /// Thawing or starting it.
    Wake,
    /// Ending its processes.
    Stop,
    /// Removing it.
    Delete,
    /// Keeping it as a template, or forking it.
    Copy,
    /// Bringing row and reality together.
    Reconcile,
    /// Changing its settings.
    Change,
}

/// One sandbox.
#[derive(Clone, PartialEq)]
pub struct Sandbox {
    /// Its name.
    pub id: SandboxId,
    /// Name of the user it belongs to.
    pub owner: String,
    /// Another name its owner gave it; unique among the owner's sandboxes that are not deleted.
    pub alias: Option<String>,
    /// The Docker dialect's word for what it is for.
    pub project: Option<String>,
    /// Which kind of provider runs it.
    pub provider: String,
    /// Where it is: see `ProviderInfo::location`.
    pub location: String,
    /// The provider's name for it, once there is one.
    pub provider_id: Option<String>,
    /// What it was made from.
    pub template: String,
    /// Where it stands.
    pub status: SandboxStatus,
    /// Why, when that is not plain.
    pub reason: Option<String>,
    /// How much it may use.
    pub limits: Limits,
    /// Its maker's own words.
    pub metadata: BTreeMap<String, String>,
    /// Variables it was made with. Secrets perhaps: never shown, never logged.
    pub env: BTreeMap<String, String>,
    /// What it may reach, as it was asked for, values of headers sealed; none: the default.
    pub network: Option<Value>,
    /// Secrets it may use: by the variable that holds each one's placeholder, the secret's name.
    pub secrets: BTreeMap<String, String>,
    /// Ports its maker named, `{"container": "host"}` as in the Docker dialect.
    pub ports: BTreeMap<String, String>,
    /// Ports whose previews anybody may open.
    pub public_ports: Vec<u16>,
    /// Volumes in it.
    pub mounts: Vec<MountedVolume>,
    /// What its agent asks for. A secret.
    pub access_token: String,
    /// How long it lives without activity (or at all).
    pub timeout_s: i64,
    /// What happens then.
    pub timeout_action: TimeoutAction,
    /// From when on that time is counted.
    pub expiry: Expiry,
    /// Whether a request may wake it when it is paused.
    pub is_auto_resumed: bool,
    /// What its provider could not give it.
    pub limitations: Vec<String>,
    /// When it was asked for.
    pub created_ms: i64,
    /// When its processes last started.
    pub started_ms: Option<i64>,
    /// When it was last paused or stopped; empty while it runs.
    pub stopped_ms: Option<i64>,
    /// When it was last used.
    pub last_activity_ms: i64,
    /// When a fixed time is over; for [`Expiry::Idle`] empty.
    pub fixed_end_ms: Option<i64>,
    /// When it was deleted.
    pub deleted_ms: Option<i64>,
    /// Counts up with every commit.
    pub version: i64,
    /// What is being done to it, by whom, until when.
    pub claim: Option<(Operation, String, i64)>,
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sandbox")
            .field("id", &self.id)
            .field("owner", &self.owner)
            .field("status", &self.status)
            .field("provider_id", &self.provider_id)
            .field("version", &self.version)
            .field("claim", &self.claim)
            .finish_non_exhaustive()
    }
}

/// A sandbox to be remembered. It starts as `creating`, version 1, claimed by its maker for [`Operation::Create`].
#[derive(Clone, PartialEq)]
pub struct NewSandbox {
    /// The row as it shall be; `status`, `version` and `claim` of it are not looked at.
    pub sandbox: Sandbox,
    /// Who makes it.
    pub holder: String,
    /// Until when nobody else may touch it.
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

/// Lets a client repeat a create without making two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    /// The client's key; unique per owner.
    pub key: String,
    /// Of the request's meaning, to tell a repetition from another request with a used key.
    pub fingerprint: String,
}

/// How an insert went.
#[derive(Clone, Debug, PartialEq)]
pub enum InsertOutcome {
    /// It is remembered.
    Inserted,
    /// The same request was made before; this is its sandbox, maybe still on its way.
    Repeated(SandboxId),
    /// The key belongs to another request.
    KeyReused,
    /// The owner has as many as it may have.
    OverQuota {
        /// How many it has.
        count: i64,
    },
    /// Another sandbox of the owner's has the alias.
    AliasTaken,
    /// A volume it shall have is not there any more.
    VolumeGone {
        /// Which.
        id: String,
    },
}

/// How a claim went.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimOutcome {
    /// The sandbox is ours to change until the claim ends; the row as it is now.
    Claimed(Box<Sandbox>),
    /// Somebody else is at it.
    Held {
        /// What is being done.
        operation: Operation,
        /// By whom.
        holder: String,
        /// Until when at most.
        until_ms: i64,
    },
    /// There is no such row.
    Missing,
}

/// What a commit changes; an empty field stays as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SandboxPatch {
    /// Where it stands now.
    pub status: Option<SandboxStatus>,
    /// Why; `Some(None)` clears it.
    pub reason: Option<Option<String>>,
    /// Which kind of provider runs it, when it moves on to another place before it is made.
    pub provider: Option<String>,
    /// Where it is now. Its timer stays where it was unless the same commit sets it.
    pub location: Option<String>,
    /// What it is made from there.
    pub template: Option<String>,
    /// The provider's name for it.
    pub provider_id: Option<String>,
    /// The limits it really got.
    pub limits: Option<Limits>,
    /// What it lacks.
    pub limitations: Option<Vec<String>>,
    /// When its processes started.
    pub started_ms: Option<i64>,
    /// When it was paused or stopped; `Some(None)`: it runs.
    pub stopped_ms: Option<Option<i64>>,
    /// When it was last used; never moves back.
    pub last_activity_ms: Option<i64>,
    /// Its new time-out.
    pub timeout_s: Option<i64>,
    /// What happens then.
    pub timeout_action: Option<TimeoutAction>,
    /// From when on that time is counted.
    pub expiry: Option<Expiry>,
    /// When a fixed time is over.
    pub fixed_end_ms: Option<Option<i64>>,
    /// Whether a request may wake it.
    pub is_auto_resumed: Option<bool>,
    /// When it was deleted.
    pub deleted_ms: Option<i64>,
    /// Its maker's own words.
    pub metadata: Option<BTreeMap<String, String>>,
    /// Network policy.
    pub network: Option<Option<Value>>,
    /// Ports anybody may open.
    pub public_ports: Option<Vec<u16>>,
    /// Secrets of a deleted sandbox are not kept: clears `env`, `secrets` and `access_token`.
    pub forget_secrets: bool,
}

/// Which sandboxes to list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SandboxFilter {
    /// Whose; none: everybody's.
    pub owner: Option<String>,
    /// Of which project.
    pub project: Option<String>,
    /// In which statuses; empty: all but deleted.
    pub statuses: Vec<SandboxStatus>,
    /// Each of these words must be in the metadata.
    pub metadata: BTreeMap<String, String>,
    /// In which place.
    pub location: Option<String>,
    /// Only those that may use a secret of this name.
    pub secret: Option<String>,
    /// Only those with this volume in them.
    pub volume_id: Option<String>,
    /// Only those made from this template.
    pub template: Option<String>,
    /// Only those made at this time or later.
    pub created_from_ms: Option<i64>,
    /// Only those whose claim ended before this without a commit.
    pub claim_ended_before_ms: Option<i64>,
    /// Only those stopped or paused before this.
    pub stopped_before_ms: Option<i64>,
    /// Whether the oldest come first; else the newest do.
    pub is_oldest_first: bool,
    /// Continue after this cursor of an earlier page, which was in the same order.
    pub cursor: Option<String>,
    /// At most so many; 0: the store's maximum of 1,000.
    pub limit: usize,
}

/// Part of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// What was found.
    pub items: Vec<T>,
    /// Where the next page begins; none: that was all.
    pub next: Option<String>,
}
