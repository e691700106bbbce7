//! What Sandyard remembers: sandboxes, users, keys, sessions, events, audit, timers, nodes.
//!
//! One [`Store`] over SQLite (nothing configured) or PostgreSQL (by URL): one SQL text for both, and one conformance suite
//! that runs on both. [`Timers`] adds Redis, when it is configured, as the fast index of what is due; the store stays the
//! truth, so that a lost Redis loses nothing.
//!
//! - [`model`]: the rows
//! - one file a table: `sandboxes`, `claims`, `events`, `users`, `keys`, `sessions`, `audit`, `nodes`, `meta`, `timer_rows`
//! - [`Timers`]: the queue over `timer_rows`, with or without Redis
//!
//! The store decides nothing: what a status may become is the service's business. It promises atomicity: whatever one
//! method writes is there together or not at all, also after a kill at any moment.
#![forbid(unsafe_code)]

mod error;
pub mod model;
mod store;
mod timers;

pub use error::{StoreError, StoreResult};
pub use store::Store;
pub use timers::Timers;
