//! What a route requires of its caller, and the caller it has admitted.

use sandyard_core::{Caller, Scope};

/// What a route requires of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// No credentials: health, login, documentation.
    Public,
    /// Credentials with this scope. An open loopback listener requires none.
    Scope(Scope),
    /// Credentials of an admin with this scope. An open loopback listener requires none.
    Admin(Scope),
    /// The token of the volume that the path names, or credentials with this scope.
    Volume(Scope),
    /// The token of another node.
    Node,
}

/// The caller of a request; an extension. The gate sets it after it has checked the route's [`Access`].
#[derive(Clone, Debug)]
pub(crate) struct Authenticated(pub Caller);
