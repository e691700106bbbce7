//! Folders that outlive sandboxes.

use serde::{Deserialize, Serialize};

use super::Other;

/// A volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Volume {
    /// Its id.
    pub volume_id: String,
    /// Its name.
    pub name: String,
    /// Whose it is.
    #[serde(default)]
    pub owner: String,
    /// How many bytes fit into it.
    #[serde(default)]
    pub size_bytes: u64,
    /// What else was said.
    #[serde(flatten)]
    pub other: Other,
}
