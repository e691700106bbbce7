//! The nftables rules that redirect what a sandbox sends to the agent.
//!
//! ```text
//! untracked   output, before connection tracking   traffic within the sandbox, and what is rejected anyway, uses no connection
//!                                                  tracking memory of the host (which no cgroup counts)
//! redirected  output, first packet of a connection TCP goes to the agent's listener, DNS to its socket
//! refused     input                                everything else that was meant for elsewhere is rejected
//! ```
//! The first and the last are optional, as is the limit on new connections: not every kernel has the expressions for them.

use super::listeners::{DNS_PORT, NAMES_PORT, REDIRECTED_PORT};
use crate::error::EngineError;
use sandyard_netlink::nftables::{Expression, Hook, NewTable, Refused};

use Expression::{
    Accept, Carries, Drop, Family, Forget, MoreThan, Network, Redirect, Reset, Transport,
    Unreachable,
};

const TABLE: &str = "sandyard";
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Where in the headers of TCP and UDP the ports are.
const SOURCE_PORT: u32 = 0;
const DESTINATION_PORT: u32 = 2;

/// 127.0.0.0/8 and ::1, by IP's header.
const LOOPBACK: [[Expression<'static>; 2]; 2] = [
    [Family(2), Network(16, &[127])],
    [
        Family(10),
        Network(24, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
    ],
];

/// Limit on new connections and DNS queries per second. The kernel tracks each for ten seconds after its end (see `SETTINGS` in
/// `kernel_fs.rs`), in memory that no cgroup counts.
const ABOVE_LIMIT: Expression<'static> = MoreThan {
    per_second: 5000,
    burst: 10_000,
};

/// Rules that a sandbox can do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extra {
    Untracked,
    Limited,
    Refused,
}

impl Extra {
    const ALL: [Self; 3] = [Self::Untracked, Self::Limited, Self::Refused];

    /// What a sandbox without them cannot do, for the user.
    fn limitation(self) -> &'static str {
        match self {
            Self::Untracked => {
                "connections within the sandbox use memory of the host that is not counted: the kernel lacks nft_ct"
            }
            Self::Limited => "no limit on new connections per second: the kernel lacks nft_limit",
            Self::Refused => {
                "a ping to any address is answered inside the sandbox instead of being rejected: the kernel lacks nft_reject_inet"
            }
        }
    }
}

/// Adds the rules to the current network namespace, as far as the kernel knows them. Adds the others to `limitations`.
pub(super) fn install(limitations: &mut Vec<String>) -> Result<(), EngineError> {
    let missing = commit_supported(NewTable::commit)?;
    limitations.extend(missing.iter().map(|extra| extra.limitation().to_owned()));
    Ok(())
}

/// Tries with fewer and fewer extras, leaving out what the kernel refuses. Returns what was left out.
fn commit_supported(
    mut commit: impl FnMut(NewTable) -> Result<(), Refused>,
) -> Result<Vec<Extra>, EngineError> {
    let mut missing = Vec::new();
    loop {
        let mut extras = Extra::ALL.to_vec();
        extras.retain(|extra| !missing.contains(extra));
        let (table, owners) = table(&extras);
        let Err(Refused { number, error }) = commit(table) else {
            return Ok(missing);
        };
        let owner = owners.iter().find(|(owned, _)| Some(*owned) == number);
        match owner {
            Some((_, extra)) => missing.push(*extra),
            None => return Err(EngineError::failed("adding nftables rules", &error)),
        }
    }
}

/// The table with these extras, and which of its chains and rules belong to which extra.
fn table(extras: &[Extra]) -> (NewTable, Vec<(u32, Extra)>) {
    let mut table = NewTable::new(TABLE);
    let mut owners = Vec::new();
    if extras.contains(&Extra::Untracked) {
        let numbers = add_untracked(&mut table);
        owners.extend(numbers.map(|number| (number, Extra::Untracked)));
    }
    if extras.contains(&Extra::Refused) {
        let numbers = add_refused(&mut table);
        owners.extend(numbers.map(|number| (number, Extra::Refused)));
    }
    let limit = add_redirected(&mut table, extras.contains(&Extra::Limited));
    owners.extend(limit.map(|number| (number, Extra::Limited)));
    (table, owners)
}

fn add_untracked(table: &mut NewTable) -> impl Iterator<Item = u32> + use<> {
    const CHAIN: &str = "untracked";
    let (redirected, names, dns) = (
        REDIRECTED_PORT.to_be_bytes(),
        NAMES_PORT.to_be_bytes(),
        DNS_PORT.to_be_bytes(),
    );
    let first = table.chain(CHAIN, "filter", Hook::Output, -300);
    // Answers of the agent go to loopback but belong to tracked connections.
    table.rule(
        CHAIN,
        &[Carries(TCP), Transport(SOURCE_PORT, &redirected), Accept],
    );
    table.rule(
        CHAIN,
        &[Carries(UDP), Transport(SOURCE_PORT, &names), Accept],
    );
    for [family, destination] in LOOPBACK {
        table.rule(CHAIN, &[family, destination, Forget, Accept]);
    }
    table.rule(CHAIN, &[Carries(TCP), Accept]);
    table.rule(
        CHAIN,
        &[Carries(UDP), Transport(DESTINATION_PORT, &dns), Accept],
    );
    let last = table.rule(CHAIN, &[Forget]);
    first..=last
}

/// Returns the number of the limiting rule.
fn add_redirected(table: &mut NewTable, is_limited: bool) -> Option<u32> {
    const CHAIN: &str = "redirected";
    let dns = DNS_PORT.to_be_bytes();
    table.chain(CHAIN, "nat", Hook::Output, -100);
    for [family, destination] in LOOPBACK {
        table.rule(CHAIN, &[family, destination, Accept]);
    }
    // A NAT chain sees only the first packet of a connection, and what it drops is not tracked.
    let limit = is_limited.then(|| table.rule(CHAIN, &[ABOVE_LIMIT, Drop]));
    table.rule(CHAIN, &[Carries(TCP), Redirect(REDIRECTED_PORT)]);
    table.rule(
        CHAIN,
        &[
            Carries(UDP),
            Transport(DESTINATION_PORT, &dns),
            Redirect(NAMES_PORT),
        ],
    );
    limit
}

fn add_refused(table: &mut NewTable) -> impl Iterator<Item = u32> + use<> {
    const CHAIN: &str = "refused";
    let first = table.chain(CHAIN, "filter", Hook::Input, 0);
    for [family, destination] in LOOPBACK {
        table.rule(CHAIN, &[family, destination, Accept]);
    }
    table.rule(CHAIN, &[Carries(TCP), Reset]);
    let last = table.rule(CHAIN, &[Unreachable]);
    first..=last
}

#[cfg(test)]
mod tests {
    use std::io;

    use rustix::process::WaitOptions;
    use rustix::thread::UnshareFlags;

    use super::*;

    const SUBSETS: [&[Extra]; 8] = [
        &[],
        &[Extra::Untracked],
        &[Extra::Limited],
        &[Extra::Refused],
        &[Extra::Untracked, Extra::Limited],
        &[Extra::Untracked, Extra::Refused],
        &[Extra::Limited, Extra::Refused],
        &Extra::ALL,
    ];

    /// Runs `act` in a network namespace of its own; says whether it succeeded.
    fn in_a_network(act: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child has one thread, makes system calls and allocates (which the C library keeps possible), and leaves
        // by _exit.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let flags = UnshareFlags::NEWUSER | UnshareFlags::NEWNET;
            // SAFETY: decides over what this child makes from now on; no memory is affected.
            let moved = unsafe { rustix::thread::unshare_unsafe(flags) };
            let code = i32::from(moved.is_err() || !act());
            // SAFETY: ends the child with none of the parent's handlers run.
            unsafe { libc::_exit(code) }
        }
        let pid = rustix::process::Pid::from_raw(pid).expect("a child");
        let waited = rustix::process::waitpid(Some(pid), WaitOptions::empty()).expect("wait");
        waited.and_then(|(_, status)| status.exit_status()) == Some(0)
    }

    #[test]
    fn this_kernel_takes_the_rules_with_any_of_the_extras() {
        for extras in SUBSETS {
            let taken = in_a_network(|| table(extras).0.commit().is_ok());
            assert!(taken, "{extras:?}");
        }
    }

    #[test]
    fn rules_are_refused_by_number() {
        let refused = in_a_network(|| {
            let mut table = NewTable::new(TABLE);
            table.chain("c", "filter", Hook::Output, 0);
            let number = table.rule("no such chain", &[Accept]);
            matches!(table.commit(), Err(refused) if refused.number == Some(number))
        });
        assert!(refused);
    }

    /// A kernel without some extras, whose icmp are as the real one's.
    fn without<'a>(lacking: &'a [Extra]) -> impl FnMut(NewTable) -> Result<(), Refused> + 'a {
        let mut attempted: Vec<Extra> = Extra::ALL.to_vec();
        move |_| {
            let (_, owners) = table(&attempted);
            let refused = owners.iter().find(|(_, extra)| lacking.contains(extra));
            let Some((number, extra)) = refused else {
                return Ok(());
            };
            attempted.retain(|kept| kept != extra);
            Err(Refused {
                number: Some(*number),
                error: io::ErrorKind::NotFound.into(),
            })
        }
    }

    #[test]
    fn missing_features_are_left_out_and_reported() {
        for lacking in SUBSETS {
            let missing = commit_supported(without(lacking)).expect("a redirect");
            assert_eq!(missing.len(), lacking.len());
            assert!(lacking.iter().all(|extra| missing.contains(extra)));
        }
    }

    #[test]
    fn without_a_redirect_there_are_no_rules() {
        for number in [None, Some(2)] {
            let refuse = |_| {
                Err(Refused {
                    number,
                    error: io::ErrorKind::NotFound.into(),
                })
            };
            assert!(commit_supported(refuse).is_err());
        }
    }
}
