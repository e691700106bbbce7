//! What holds a sandbox's processes: cgroups, seccomp, capabilities, rlimits.
//!
//! - [`cgroup`]: how much they may use together; freeze, kill and accounting
//! - [`seccomp`]: which system calls they may make
//! - [`caps`]: what root inside may do
//! - [`rlimits`]: what one process may use
//! - [`descriptors`]: refusing descriptors that processes inside pass to the host
//! - [`host`]: the resources of the host
//! - [`mountinfo`]: what is mounted where
//!
//! Everything is synchronous and starts no thread: the launcher forks without exec. This crate decides no policy about
//! namespaces, mounts or networks; it holds whatever runs inside of them.

pub mod caps;
pub mod cgroup;
pub mod descriptors;
pub mod host;
pub mod mountinfo;
pub mod rlimits;
pub mod seccomp;
