//! Authentication: passwords, tokens, keys, roles, scopes, lock-out, signed links.
//!
//! [`Auth`] turns a credential into a [`Caller`](sandyard_core::Caller), or rejects it with a reason. Routes and the service decide what
//! that caller may do.
//!
//! - `login`, `lockout`, `password`: login with name and password, with few guesses
//! - `session`, `jwt`, `refresh_token`: the tokens of a login
//! - `keys`, `key_text`, `key_cache`: API keys
//! - `authenticate`: finds the caller of a credential
//! - `users`, `user_name`, `last_admin`, `first_admin`: accounts
//! - `disabled_users`: whether the owner of a sandbox is disabled
//! - `preview`, `traffic`, `node`: short signed tokens for links, programs and other servers
//! - `secret`: one secret per installation, one key per purpose
//! - `short_cache`: caches answers of the store for a moment
//!
//! All input is untrusted: sizes are bounded before work is done, and secrets are compared in constant time or found by their hash. No
//! type shows a secret in its `Debug`.
#![forbid(unsafe_code)]

mod auth;
mod authenticate;
mod config;
mod disabled_users;
mod error;
mod first_admin;
mod jwt;
mod key_cache;
mod key_text;
mod keys;
mod last_admin;
mod lockout;
mod login;
mod node;
mod password;
mod preview;
mod random;
mod refresh_token;
mod secret;
mod session;
mod short_cache;
mod traffic;
mod user_name;
mod users;

pub use auth::Auth;
pub use config::AuthConfig;
pub use error::{AuthError, Rejection};
pub use keys::{NewKey, may_create_key};
pub use session::Tokens;
pub use users::{UserChange, UserView};
