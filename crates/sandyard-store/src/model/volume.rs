//! Folders that outlive sandboxes.

use std::fmt;

use sandyard_core::SandboxId;
use serde::{Deserialize, Serialize};

/// Where a volume stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VolumeStatus {
    /// Somebody makes it; nobody was told of it yet.
    Creating,
    /// It can be used.
    Ready,
    /// It is on its way out, and cannot be used any more.
    Deleting,
}

/// A folder that outlives sandboxes and can be in several of them.
#[derive(Clone, PartialEq, Eq)]
pub struct Volume {
    /// Its id: letters and digits.
    pub id: String,
    /// Whose it is.
    pub owner: String,
    /// Its name; unique per owner.
    pub name: String,
    /// Where it is: see `ProviderInfo::location`.
    pub location: String,
    /// Where it stands.
    pub status: VolumeStatus,
    /// How much fits into it.
    pub size_bytes: i64,
    /// Opens its contents to whoever has it. A secret.
    pub token: String,
    /// When it was asked for.
    pub created_ms: i64,
}

impl fmt::Debug for Volume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Volume")
            .field("id", &self.id)
            .field("owner", &self.owner)
            .field("name", &self.name)
            .field("location", &self.location)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// How remembering a volume went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeInsert {
    /// It is remembered.
    Inserted,
    /// Another volume of the owner's has the name.
    NameTaken,
    /// The owner has as many as it may have.
    OverQuota {
        /// How many it has.
        count: i64,
    },
}

/// How the beginning of a volume's end went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeRemoval {
    /// It is on its way out: no sandbox has it, and none can get it any more.
    Begun,
    /// It is in these sandboxes; a few of them, if there are many.
    InUse(Vec<SandboxId>),
    /// There is no such volume.
    Missing,
}
