//! Egress: what a sandbox's network namespace needs so that everything it sends goes to the gateway.
//!
//! The checks add the same nftables expressions as the engine's `init/egress`.

use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto};
use rustix::thread::UnshareFlags;

use super::namespaces::enter_user;
use super::nftables::{self, Rule};
use crate::attempt::{Attempt, StepExt, attempt};
use crate::host::Host;
use crate::report::{Check, Need};

pub(super) fn checks(host: &Host) -> Vec<Check> {
    vec![redirect(host), reject(host), rejected_packets(host)]
}

fn redirect(host: &Host) -> Check {
    let check = Check::ok("nftables-nat", Need::Recommended)
        .purpose("programs in a sandbox reach allowed hosts without proxy settings")
        .detail("redirect rules work in a network namespace");
    match in_a_network(host, || nftables::add(Rule::Redirect)) {
        Ok(()) => check,
        Err(failure) => check.missing(
            format!(
                "{}; only programs that use the proxy variables can reach allowed hosts",
                failure.text()
            ),
            "sudo modprobe -a nf_tables nft_chain_nat nft_redir",
        ),
    }
}

/// Rules that a sandbox can do without: what happens without each, and the kernel module that has it.
const EXTRAS: [(Rule, &str, &str); 3] = [
    (
        Rule::Refuse,
        "packets that are neither TCP nor DNS are not rejected at once",
        "nft_reject_inet",
    ),
    (
        Rule::Forget,
        "connections within a sandbox use memory of the host that is not counted",
        "nft_ct",
    ),
    (
        Rule::Limit,
        "the number of new connections per second is not limited",
        "nft_limit",
    ),
];

fn reject(host: &Host) -> Check {
    let check = Check::ok("nftables-refuse", Need::Recommended)
        .purpose("forbidden packets fail at once, and connections of a sandbox use little memory of the host")
        .detail("reject, notrack and limit rules work");
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
    let (problems, modules): (Vec<String>, Vec<&str>) = missing.into_iter().unzip();
    let fix = format!("sudo modprobe -a nf_tables {}", modules.join(" "));
    match problems.len() == EXTRAS.len() {
        true => check.missing(problems.join("; "), fix),
        false => check.partial(problems.join("; "), fix),
    }
}

fn rejected_packets(host: &Host) -> Check {
    let check = Check::ok("raw-sockets", Need::Optional)
        .purpose("rejected packets appear in the network activity of a sandbox")
        .detail("raw sockets work in a network namespace");
    match in_a_network(host, raw_socket) {
        Ok(()) => check,
        Err(failure) => check.missing(
            format!("{}; only connections appear there", failure.text()),
            "if this is a container, start it with `--cap-add NET_RAW`",
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
