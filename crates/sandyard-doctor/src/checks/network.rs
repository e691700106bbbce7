//! The way out: what the redirect in a sandbox's own network namespace needs.

use rustix::thread::UnshareFlags;

use super::namespaces::enter_user;
use super::nftables;
use crate::attempt::attempt;
use crate::host::Host;
use crate::report::{Check, Need};

pub(super) fn checks(host: &Host) -> Vec<Check> {
    let check = Check::ok(
        "nftables-nat",
        "programs inside reach allowed hosts with no proxy settings",
        Need::Recommended,
        "a redirect works in a network namespace of its own",
    );
    let tried = attempt(|| {
        enter_user(host, UnshareFlags::NEWNET)?;
        nftables::redirect()
    });
    vec![match tried {
        Ok(()) => check,
        Err(failure) => check.missing(
            failure.text(),
            "sudo modprobe -a nf_tables nft_chain_nat nft_redir",
        ),
    }]
}
