//! Secrets that sandboxes use without seeing them.

use std::fmt;

use sandyard_core::network::BoundHost;

/// A secret, sealed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// Whose it is.
    pub owner: String,
    /// Its name; unique per owner.
    pub name: String,
    /// Its value under a key that the store does not have. Another text whenever it is sealed, also for the same value.
    pub sealed: String,
    /// Where it may go, and nowhere else.
    pub hosts: Vec<BoundHost>,
    /// What sandboxes have in its place.
    pub placeholder: String,
    /// Whether everybody may use it.
    pub is_shared: bool,
    /// When it was first kept.
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
