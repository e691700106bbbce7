//! HTTP: dialects, streams, previews, documentation.
//!
//! A dialect translates between its contract and the verbs of `sandyard-service`; it decides nothing. Every route is in
//! [`router`], with what a caller needs for it.
//!
//! | module | holds |
//! |---|---|
//! | `router` | every route on one page, and the table tests are made from |
//! | `native/` | `/sandboxes/*`: one verb a file |
//! | `enveloped` | the same routes in an envelope, for the JWT contract |
//! | `docker/` | `/api/sandboxes/*` |
//! | `accounts/` | login, users, keys, audit |
//! | `stream/` | commands, terminals and logs as they happen |
//! | `files/` | files and folders of any size, in and out |
//! | `mcp/` | `/mcp`: the same verbs as tools for assistants |
//! | `preview` | ports of sandboxes, over `sandyard-preview` |
//! | `internal/` | what other nodes ask |
//! | `middleware/` | request ids, credentials, host check, access log, limits |
//! | `listen` | sockets, TLS, graceful end |
#![forbid(unsafe_code)]

mod accounts;
mod app;
mod bounds;
mod docker;
mod e2b;
mod enveloped;
mod error;
mod extract;
mod files;
mod health;
mod info;
mod internal;
mod links;
pub mod listen;
mod long_text;
mod mcp;
mod metrics;
mod middleware;
mod mounted;
mod native;
mod need;
mod openapi;
mod preview;
mod providers;
pub mod router;
pub mod serve;
mod settings;
mod stream;
mod time;
mod write_check;

pub use app::{App, AuthMode, Listener, ServerSettings};
pub use error::ApiError;
pub use need::Need;
