//! The database: sandboxes, users, keys, sessions, events, audit, timers, nodes.
//!
//! One [`Store`] over SQLite (the default) or PostgreSQL (by URL), with the same SQL for both and one conformance suite that runs on both.
//! [`Timers`] uses Redis, if configured, as a fast index of due timers. The database stays authoritative, so that a lost Redis loses
//! nothing.
//!
//! - [`model`]: the rows
//! - one file per table: `sandboxes/`, `events`, `audit`, `users`, `keys`, `sessions`, `secrets`, `volumes`, `meta`, `nodes`, `timer_rows`
//! - `location`: renames a location
//! - `timers/`: [`Timers`], the queue over `timer_rows`, with or without Redis
//! - `connect`, `db`, `sqlite_pool`, `sql`, `migrate`: one interface to both engines
//! - `disk`: free space, and the reserve that keeps a SQLite file writable on a full disk
//!
//! The store makes no decisions: the service decides which transitions are allowed. The store guarantees atomicity: a method writes everything
//! or nothing, even if the process is killed.
#![forbid(unsafe_code)]

mod address;
mod audit;
mod backup;
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

pub use backup::{copy_sqlite, sqlite_file};
pub use error::StoreError;
pub use store::Store;
pub use timer_rows::SANDBOX_TOPIC;
pub use timers::Timers;

/// Result of an operation of the store.
pub type StoreResult<T> = error::Result<T>;
