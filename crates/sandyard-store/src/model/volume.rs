//! The row of a volume.

use sandyard_core::SandboxId;
use serde::{Deserialize, Serialize};

/// The status of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VolumeStatus {
    /// The provider is creating it; the request has no answer yet.
    Creating,
    /// It can be used.
    Ready,
    /// It is being deleted, and cannot be used any more.
    Deleting,
}

/// A directory that outlives sandboxes and can be mounted in several of them.
#[derive(Clone, PartialEq, Eq)]
pub struct Volume {
    /// Its id: letters and digits.
    pub id: String,
    /// The name of its owner.
    pub owner: String,
    /// Its name; unique per owner.
    pub name: String,
    /// Its location: see `ProviderInfo::location`.
    pub location: String,
    /// Its status.
    pub status: VolumeStatus,
    /// Its size in bytes.
    pub size_bytes: i64,
    /// The token that gives access to its content. A secret.
    pub token: String,
    /// When its create was requested.
    pub created_ms: i64,
}

sandyard_core::debug_fields!(Volume: id, owner, name, location, status);

/// The result of inserting a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeInsert {
    /// The row is inserted.
    Inserted,
    /// Another volume of the owner's has the name.
    NameTaken,
    /// The owner has reached its quota.
    OverQuota {
        /// The owner's number of volumes.
        count: i64,
    },
}

/// The result of starting to delete a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeRemoval {
    /// Its status is `deleting`: no sandbox has it, and none can get it any more.
    Started,
    /// These sandboxes have it; only the first few, if there are many.
    InUse(Vec<SandboxId>),
    /// There is no such volume.
    Missing,
}
