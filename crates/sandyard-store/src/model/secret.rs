//! Secrets that sandboxes use without seeing them.

use std::fmt;

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

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("owner", &self.owner)
            .field("name", &self.name)
            .field("hosts", &self.hosts)
            .field("is_shared", &self.is_shared)
            .finish_non_exhaustive()
    }
}
