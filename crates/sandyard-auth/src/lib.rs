//! Who is asking: passwords, tokens, keys, roles, scopes, lock-out, signed links.
//!
//! [`Auth`] turns a credential into a [`Caller`](sandyard_core::Caller), or says why not. What that caller may do is
//! decided where the route or the sandbox is known, not here.
//!
//! - `login`, `lockout`, `password`: a name and a password, guessed at most five times
//! - `session`, `jwt`, `refresh_token`: what a login gives, and how it ends
//! - `keys`, `key_text`, `key_cache`: keys of programs
//! - `authenticate`: any of them, back to a caller
//! - `users`, `user_name`, `last_admin`, `first_admin`: who there is
//! - `standing`: whether a user may still do anything
//! - `preview`, `traffic`, `node`: short signed words, for links, for programs and between servers
//! - `secret`: one secret per installation, one key per purpose
//!
//! Nothing here trusts what it is given: sizes are bounded before work is done, and secrets are compared in constant time
//! or found by their hash. No type shows a secret in its `Debug`.
#![forbid(unsafe_code)]

mod auth;
mod authenticate;
mod config;
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
mod standing;
mod traffic;
mod user_name;
mod users;

pub use auth::Auth;
pub use config::AuthConfig;
pub use error::{AuthError, Why};
pub use keys::{NewKey, may_create_key};
pub use session::Tokens;
pub use users::{UserChange, UserView};
