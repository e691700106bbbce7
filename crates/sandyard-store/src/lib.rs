//! What Sandyard remembers: sandboxes, users, keys, sessions, events, audit, timers, nodes.
//!
//! One [`Store`] over SQLite (nothing configured) or PostgreSQL (by URL): one SQL text for both, and one conformance suite
//! that runs on both. [`Timers`] adds Redis, when it is configured, as the fast index of what is due; the store stays the
//! truth, so that a lost Redis loses nothing.
//!
//! - [`model`]: the rows
//! - one file a table: `sandboxes/`, `events`, `audit`, `users`, `keys`, `sessions`, `secrets`, `volumes`, `meta`, `nodes`, `timer_rows`
//! - `place`: what is remembered under the name of a place that has another one now
//! - `timers/`: [`Timers`], the queue over `timer_rows`, with or without Redis
//! - `connect`, `db`, `pool`, `sql`, `migrate`: the two engines behind one face
//! - `disk`: free space, and the reserve that keeps a SQLite file writable on a full disk
//!
//! The store decides nothing: what a status may become is the service's business. It promises atomicity: whatever one
//! method writes is there together or not at all, also after a kill at any moment.
#![forbid(unsafe_code)]

mod address;
mod audit;
mod connect;
mod db;
mod disk;
mod error;
mod events;
mod keys;
mod location;
mod meta;
mod migrate;
pub mod model;
mod nodes;
mod sandboxes;
mod secrets;
mod sessions;
mod snapshots;
mod sql;
mod sqlite_pool;
mod store;
mod timer_rows;
mod timers;
mod users;
mod volumes;

pub use error::{StoreError, StoreResult};
pub use store::Store;
pub use timer_rows::SANDBOX_TOPIC;
pub use timers::Timers;
