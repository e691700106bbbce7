//! `[auth]`, typed.

use std::time::Duration;

use crate::secret::Secret;
use crate::values::Values;

/// `[auth]`: who may come in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AuthSettings {
    /// When credentials are required; [`is_open`](crate::is_open) answers it for a listener.
    pub mode: AuthMode,
    /// Signs login tokens; `None` for one that all servers of the store share.
    pub jwt_secret: Option<Secret>,
    /// How long a login token is good for.
    pub token_ttl: Duration,
    /// How long a login can be renewed.
    pub refresh_ttl: Duration,
    /// Wrong passwords until a name is locked; `None` for never.
    pub lockout_failures: Option<u64>,
    /// How long it stays locked.
    pub lockout_period: Duration,
}

/// When the native and the Docker-style dialect require credentials. The others always do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMode {
    /// Everywhere but on loopback.
    Auto,
    /// Everywhere.
    Required,
    /// Nowhere; refused where others can reach the server.
    Open,
}

impl AuthSettings {
    pub(super) fn build(values: &Values) -> Self {
        let refresh_ttl = values.duration("auth.refresh_ttl");
        Self {
            mode: match values.text("auth.mode") {
                Some("open") => AuthMode::Open,
                Some("required") => AuthMode::Required,
                _ => AuthMode::Auto,
            },
            jwt_secret: values
                .text("auth.jwt_secret")
                .map(|text| Secret::new(text.to_owned())),
            token_ttl: values.duration("auth.token_ttl").min(refresh_ttl),
            refresh_ttl,
            lockout_failures: values.count("auth.lockout_failures"),
            lockout_period: values.duration("auth.lockout_period"),
        }
    }
}
