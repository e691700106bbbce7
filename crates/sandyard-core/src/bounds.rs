//! Longest texts and largest maps that a request may carry.
//!
//! The service enforces these numbers and the OpenAPI document states them. Lengths are in characters, as JSON Schema counts
//! them, unless the name says bytes.

/// Longest `user_id`: the owner of a sandbox or volume. The user need not have an account.
pub const MAX_USER_ID: usize = 128;
/// Longest alias of a sandbox.
pub const MAX_ALIAS: usize = 63;
/// Longest name of a project.
pub const MAX_PROJECT: usize = 128;
/// Longest name of a provider.
pub const MAX_PROVIDER: usize = 64;
/// Longest name of a template. It may be an image reference with registry, path, tag and digest.
pub const MAX_TEMPLATE: usize = 512;
/// Longest `Idempotency-Key`.
pub const MAX_IDEMPOTENCY_KEY: usize = 255;
/// Longest name of a volume.
pub const MAX_VOLUME_NAME: usize = 128;
/// Longest name of a secret.
pub const MAX_SECRET_NAME: usize = 64;
/// Longest value of a secret, in bytes.
pub const MAX_SECRET_BYTES: usize = 8 << 10;
/// Most hosts that one secret may be sent to.
pub const MAX_SECRET_HOSTS: usize = 64;
/// Longest path inside a sandbox: `PATH_MAX` of Linux.
pub const MAX_PATH: usize = 4096;
/// Most entries of `env`, `metadata`, `secrets` or `volumes`.
pub const MAX_MAP_ENTRIES: usize = 256;
/// Longest key of such a map.
pub const MAX_MAP_KEY: usize = 256;
/// Longest value of such a map.
pub const MAX_MAP_VALUE: usize = 32_768;
/// Most bytes of all keys and values of one map, so that a stored row stays small.
pub const MAX_MAP_BYTES: usize = 64 << 10;
