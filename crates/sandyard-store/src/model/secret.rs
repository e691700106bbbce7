//! Secrets that sandboxes use without seeing them.

use sandyard_core::network::BoundHost;

/// The row of a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// The name of its owner.
    pub owner: String,
    /// Its name; unique per owner.
    pub name: String,
    /// Its value, encrypted with a key that the store does not have. Sealing the same value again gives another text.
    pub sealed: String,
    /// The only hosts that it may be sent to.
    pub hosts: Vec<BoundHost>,
    /// What sandboxes see instead of the value.
    pub placeholder: String,
    /// Whether every user may use it.
    pub is_shared: bool,
    /// When it was created.
    pub created_ms: i64,
    /// When it was last changed.
    pub updated_ms: i64,
}

sandyard_core::debug_fields!(Secret: owner, name, hosts, is_shared);
