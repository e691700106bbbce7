//! Watching directories for clients.
//!
//! One inotify instance serves all watchers, because the kernel counts instances per user across all sandboxes of a
//! host. [`hub`] owns it and the map from watched directories to watchers; each [`watcher`] is a bounded queue.

mod hub;
mod rpc;
mod stream;
mod watcher;

pub(crate) use hub::Hub;
pub(crate) use rpc::{unary, watch_dir};
