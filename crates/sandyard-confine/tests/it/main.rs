//! Everything against the real kernel, in forked children. Needs root, as a sandbox's first process has inside.

mod caps;
mod cgroup;
mod cgroup_layouts;
mod child;
mod programs;
mod rlimits;
mod seccomp;
