//! A template that a user made of a sandbox.

use sandyard_core::SandboxId;

/// A template that a user made of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The template's name.
    pub name: String,
    /// Whose it is.
    pub owner: String,
    /// What its owner calls it; the newest that was given a name has it.
    pub alias: Option<String>,
    /// What it was made of.
    pub sandbox_id: Option<SandboxId>,
    /// When.
    pub created_ms: i64,
}
