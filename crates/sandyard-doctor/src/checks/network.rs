//! The way out: what a sandbox's own network namespace needs, so that all that leaves it comes to the gateway.
//!
//! Tried here is what the engine does, expression by expression: see `init/way_out` there.

use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto};
use rustix::thread::UnshareFlags;

use super::namespaces::enter_user;
use super::nftables::{self, Rule};
use crate::attempt::{Attempt, Named, attempt};
use crate::host::Host;
use crate::report::{Check, Need};

pub(super) fn checks(host: &Host) -> Vec<Check> {
    vec![redirect(host), refuse(host), refusals(host)]
}

fn redirect(host: &Host) -> Check {
    let check = Check::ok(
        "nftables-nat",
        "programs inside reach allowed hosts with no proxy settings",
        Need::Recommended,
        "a redirect works in a network namespace of its own",
    );
    match in_a_network(host, || nftables::add(Rule::Redirect)) {
        Ok(()) => check,
        Err(failure) => check.missing(
            format!(
                "{}; without it only programs that heed proxy variables reach anything",
                failure.text()
            ),
            "sudo modprobe -a nf_tables nft_chain_nat nft_redir",
        ),
    }
}

/// What is left out where it is missing, one by one: what then happens, and which module has it.
const EXTRAS: [(Rule, &str, &str); 3] = [
    (
        Rule::Refuse,
        "what is neither TCP nor a look-up is not refused at once",
        "nft_reject_inet",
    ),
    (
        Rule::Forget,
        "connections within a sandbox cost memory of the host",
        "nft_ct",
    ),
    (
        Rule::Limit,
        "new connections a second have no limit",
        "nft_limit",
    ),
];

fn refuse(host: &Host) -> Check {
    let check = Check::ok(
        "nftables-refuse",
        "what cannot leave a sandbox fails at once, and its connections cost the host little",
        Need::Recommended,
        "packets are refused, connections left uncounted, new ones limited",
    );
    let missing: Vec<_> = EXTRAS
        .iter()
        .filter_map(|(rule, without, module)| {
            let failure = in_a_network(host, || nftables::add(*rule)).err()?;
            Some((format!("{}: {without}", failure.text()), *module))
        })
        .collect();
    if missing.is_empty() {
        return check;
    }
    let (told, modules): (Vec<String>, Vec<&str>) = missing.into_iter().unzip();
    let fix = format!("sudo modprobe -a nf_tables {}", modules.join(" "));
    match told.len() == EXTRAS.len() {
        true => check.missing(told.join("; "), fix),
        false => check.partial(told.join("; "), fix),
    }
}

fn refusals(host: &Host) -> Check {
    let check = Check::ok(
        "raw-sockets",
        "packets that were refused are recorded",
        Need::Optional,
        "work in a network namespace of its own",
    );
    match in_a_network(host, raw_socket) {
        Ok(()) => check,
        Err(failure) => check.missing(
            format!("{}; without it only connections are", failure.text()),
            "allow CAP_NET_RAW to whatever contains this host",
        ),
    }
}

fn raw_socket() -> Attempt {
    let (kind, flags) = (SocketType::RAW, SocketFlags::CLOEXEC);
    rustix::net::socket_with(AddressFamily::INET, kind, flags, Some(ipproto::ICMP))
        .map(drop)
        .step("open a raw socket")
}

fn in_a_network(host: &Host, work: impl FnOnce() -> Attempt) -> Attempt {
    attempt(|| {
        enter_user(host, UnshareFlags::NEWNET)?;
        work()
    })
}
