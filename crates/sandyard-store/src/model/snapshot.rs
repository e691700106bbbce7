//! The row of a snapshot.

use sandyard_core::SandboxId;

/// A template that was created from a sandbox, and its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The provider's name of the template.
    pub name: String,
    /// The name of its owner.
    pub owner: String,
    /// The owner's name for it. If several snapshots were given the same name, the newest has it.
    pub alias: Option<String>,
    /// The sandbox that it was created from.
    pub sandbox_id: Option<SandboxId>,
    /// When it was created.
    pub created_ms: i64,
    /// Whether its owner lets every user start sandboxes from it.
    pub is_public: bool,
}
