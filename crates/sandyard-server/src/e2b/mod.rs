//! The E2B dialect: what the official E2B SDKs speak, so that their users change three variables and nothing else.
//!
//! | file | holds |
//! |---|---|
//! | `door` | which requests are this dialect's, and which of its two planes they mean |
//! | `error` | failures as its clients read them |
//! | `control/` | sandboxes, snapshots, templates: one verb a file |
//! | `volumes/` | volumes and their contents |
//! | `data/` | requests for what runs in a sandbox, its agent first of all |
//!
//! It is reached in three ways: by a listener of its own, at `api.{domain}` and `sandbox.{domain}`, and below `/e2b`.

mod control;
pub(crate) mod data;
mod door;
mod error;
pub(crate) mod volumes;

pub(crate) use door::{PREFIX, enter};
pub(crate) use error::{E2bError, translate};

use crate::mounted::Mounted;

/// The routes of the control plane. Credentials are always asked for: every client of this dialect has some.
pub(crate) fn routes() -> Vec<Mounted> {
    let mut routes = control::routes();
    routes.extend(volumes::routes());
    routes
}
