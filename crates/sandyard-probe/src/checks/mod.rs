//! Every attempt, one file per idea. To add one: write a small function that takes the context and returns an
//! [`Outcome`](crate::check::Outcome), and enter it in its file's `CHECKS` with what it must find on a bare host.

mod abi;
mod agent;
mod capabilities;
mod cgroups;
mod descriptors;
mod devices;
mod footprint;
mod handles;
mod host_processes;
mod ids;
mod ipc;
mod kernel_files;
mod keys;
mod knobs;
mod mounting;
mod namespaces;
mod nesting;
mod network;
mod remounting;
mod routes;
mod scheduling;
mod secrets;
mod setuid;
mod socket_families;
mod syscalls;
mod terminal;
mod unix_sockets;

use crate::check::Check;
pub(crate) use footprint::DIRECTORIES as FOOTPRINT_DIRECTORIES;

/// Every check in the order it is run: looking first, breaking things last.
#[must_use]
pub fn all() -> Vec<Check> {
    [
        secrets::CHECKS,
        handles::CHECKS,
        descriptors::CHECKS,
        kernel_files::CHECKS,
        knobs::CHECKS,
        cgroups::CHECKS,
        devices::CHECKS,
        host_processes::CHECKS,
        agent::CHECKS,
        ids::CHECKS,
        setuid::CHECKS,
        scheduling::CHECKS,
        capabilities::CHECKS,
        keys::CHECKS,
        namespaces::CHECKS,
        nesting::CHECKS,
        syscalls::CHECKS,
        socket_families::CHECKS,
        abi::CHECKS,
        terminal::CHECKS,
        network::CHECKS,
        routes::CHECKS,
        unix_sockets::CHECKS,
        ipc::CHECKS,
        footprint::CHECKS,
        mounting::CHECKS,
        remounting::CHECKS,
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_check_has_its_own_id_and_says_what_it_does() {
        let mut ids = HashSet::new();
        for check in all() {
            assert!(ids.insert(check.id), "{} twice", check.id);
            assert!(
                !check.attempt_text.is_empty() && !check.expected.is_empty(),
                "{}",
                check.id
            );
        }
    }
}
