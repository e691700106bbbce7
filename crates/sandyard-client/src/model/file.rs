//! Files.

use serde::{Deserialize, Serialize};

use super::Other;

/// A file or folder in a sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Where it is.
    pub path: String,
    /// `file`, `directory` or `symlink`.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// Its size.
    #[serde(default)]
    pub size: i64,
    /// What else was said.
    #[serde(flatten)]
    pub other: Other,
}

impl FileEntry {
    /// Says whether there may be more in it.
    pub fn is_folder(&self) -> bool {
        self.kind == "directory"
    }
}

/// A file that differs from the template's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Where.
    pub path: String,
    /// `added`, `modified` or `deleted`.
    pub kind: String,
}
