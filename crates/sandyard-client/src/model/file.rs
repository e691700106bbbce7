//! Files.

use serde::{Deserialize, Serialize};

use super::Other;

/// File or directory in a sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Last component of the path.
    #[serde(default)]
    pub name: String,
    /// Absolute path inside the sandbox.
    pub path: String,
    /// `file`, `directory` or `symlink`.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// Size in bytes.
    #[serde(default)]
    pub size: i64,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Other,
}

impl FileEntry {
    /// Whether this is a directory.
    pub fn is_folder(&self) -> bool {
        self.kind == "directory"
    }
}

/// File that differs from the template's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Path inside the sandbox.
    pub path: String,
    /// `added`, `modified` or `deleted`.
    pub kind: String,
}
