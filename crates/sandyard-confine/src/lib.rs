//! What holds a sandbox's processes: cgroups, seccomp, capabilities, rlimits.
