//! Control groups: limits, freeze, kill and accounting of one sandbox's processes.
//!
//! Hosts differ. [`Hierarchy::detect`] reads what is mounted and selects a hierarchy for each job:
//!
//! ```text
//! pure v2   /sys/fs/cgroup                    memory cpu pids freeze kill
//! v1        /sys/fs/cgroup/<controller>       memory cpu pids freezer devices, each its own tree or co-mounted
//! hybrid    both: v1 has the controllers, v2 (`unified`) freezes, kills and counts processor time
//! rootless  the highest ancestor of our own v2 group that we may write to (systemd's `user@.service`)
//! none      nothing: [`Support`] says so, and groups hold nothing
//! ```
//!
//! In each tree in use a sandbox is `<base>/sandyard/<name>`. The base is the root of the mount when that is writable, so
//! that a restarted launcher finds its sandboxes wherever it was started from; otherwise it is our own group.
//! Detecting changes nothing on the host; the parent group appears with the first sandbox.
//!
//! - `mounts`: what is mounted where, and where this process is
//! - `tree`: one mounted hierarchy and its jobs; file access below it
//! - `hierarchy`: all trees together; create, open, list
//! - `group`: one sandbox's group over all trees
//! - `limits`, `freezer`, `devices`, `stats`, `sample`: one job each, v1 and v2 side by side

mod devices;
mod error;
mod freezer;
mod group;
mod hierarchy;
mod limits;
mod mounts;
mod own_groups;
mod parent;
mod sample;
mod stats;
mod tree;

pub use error::CgroupError;
pub(crate) use error::Result;
pub use group::Cgroup;
pub use hierarchy::{Hierarchy, ParentLocation, Settings, Support};
pub use own_groups::OwnGroups;
pub use sample::Sample;
pub use stats::Stats;
