//! Volumes: storage that outlives sandboxes.

use serde::{Deserialize, Serialize};

use super::Other;

/// Volume: storage that outlives sandboxes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Volume {
    /// ID of the volume.
    pub volume_id: String,
    /// Name of the volume.
    pub name: String,
    /// User who owns the volume.
    #[serde(default)]
    pub owner: String,
    /// Capacity in bytes.
    #[serde(default)]
    pub size_bytes: u64,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}
