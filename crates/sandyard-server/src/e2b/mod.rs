//! The E2B dialect: what the official E2B SDKs speak. Their users change three variables and nothing else.
//!
//! | file | holds |
//! |---|---|
//! | `dispatch` | which requests belong to this dialect, and to which of its two planes |
//! | `error` | failures as its clients read them |
//! | `control/` | sandboxes, snapshots, templates: one verb per file |
//! | `volumes/` | volumes and their contents |
//! | `data/` | requests for programs in a sandbox, first of all its agent |
//!
//! Clients reach it in three ways: at a listener of its own, at `api.{domain}` and `sandbox.{domain}`, and below `/e2b`.

mod control;
pub(crate) mod data;
mod dispatch;
mod error;
mod volumes;

pub(crate) use dispatch::{PREFIX, dispatch};
#[cfg(test)]
pub(crate) use error::status_of;
pub(crate) use error::{E2bError, translate};

use crate::route::Route;

/// The routes of the control plane. They always require credentials, which every client of this dialect has.
pub(crate) fn routes() -> Vec<Route> {
    let mut routes = control::routes();
    routes.extend(volumes::routes());
    routes
}
