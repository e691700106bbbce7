//! The checks, one file per family.

mod capacity;
mod cgroup;
mod disk;
mod environment;
mod kernel;
mod mounts;
mod namespaces;
mod network;
mod nftables;
mod uids;

use crate::host::Host;
use crate::report::Check;

/// Runs all checks in the order in which they read best.
pub(crate) fn all(host: &Host) -> Vec<Check> {
    let families: [fn(&Host) -> Vec<Check>; 9] = [
        kernel::checks,
        namespaces::checks,
        uids::checks,
        mounts::checks,
        cgroup::checks,
        disk::checks,
        network::checks,
        capacity::checks,
        environment::checks,
    ];
    families.iter().flat_map(|family| family(host)).collect()
}
