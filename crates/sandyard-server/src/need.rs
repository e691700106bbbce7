//! What a caller needs for a route.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use sandyard_core::{Caller, ErrorKind, Scope};

use crate::error::ApiError;

/// What a route asks of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing: health, login, documentation.
    Nothing,
    /// Credentials with this scope; on an open loopback listener nothing.
    Scope(Scope),
    /// The same, of an admin.
    Admin(Scope),
    /// The token of the volume that the path names, or credentials with this scope.
    Volume(Scope),
    /// The token of another node.
    Node,
}

/// Who is asking, for handlers. The gate puts it there after it has checked the route's [`Need`].
#[derive(Clone, Debug)]
pub(crate) struct Who(pub Caller);

impl<S: Sync> FromRequestParts<S> for Who {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parts
            .extensions
            .get::<Self>()
            .cloned()
            .ok_or_else(|| ApiError::new(ErrorKind::Unauthenticated, "credentials are missing"))
    }
}
