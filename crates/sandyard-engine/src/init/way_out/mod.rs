//! The way out, from inside: everything a program sends elsewhere comes to the agent, which has the gateway carry it.
//!
//! There is no link but loopback. Routes make every address one of the sandbox's own, rules redirect TCP and look-ups to
//! sockets that are bound here and handed to the agent (`doors.rs`), and refuse the rest at once (`rules.rs`). Where the kernel
//! has no such rules there are no such routes either: programs then need the agent's proxy, which their variables name.
//!
//! Root inside can get at the descriptors (`pidfd_getfd`, or by tracing the agent). It gains nothing by it: they reach no
//! further than its own network, whose programs it controls anyway, and what the agent tells the gateway is never trusted.

mod doors;
mod rules;

use std::net::Ipv4Addr;

use sandyard_agent::EgressDoors;
use sandyard_wire::egress::NAME_SERVER;

use crate::error::{EngineError, Result};
use crate::steps::{FaultPlace, Faults};
use crate::sys::{Doing, net, refusals};

/// Answers look-ups where nothing is redirected.
pub(crate) const PROXIED_NAME_SERVER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 53);

/// What was set up.
#[derive(Debug)]
pub(crate) struct WayOut {
    /// For the agent.
    pub(crate) doors: EgressDoors,
    /// For `/etc/resolv.conf`.
    pub(crate) name_server: Ipv4Addr,
}

/// Makes a network of the sandbox's own and opens the way out of it; adds what the kernel could not give to `lacks`.
pub(super) fn open(steps: &mut Faults, lacks: &mut Vec<String>) -> Result<WayOut> {
    steps.step("make a network", net::leave_hosts_network)?;
    let redirected = steps.attempt("redirect what leaves", || rules::lay(lacks))?;
    // The rules first: no packet gets past them.
    steps.step("raise the loopback link", || {
        net::raise_loopback(redirected.is_ok())
    })?;
    open_doors(steps, lacks, redirected)
}

/// Opens the way out of the network this process is in, whose only link is loopback and may be up already: somebody else made it,
/// and may not let us change it.
pub(crate) fn open_here(lacks: &mut Vec<String>) -> Result<WayOut> {
    let mut steps = Faults::at(FaultPlace::Init, None);
    let redirected = rules::lay(lacks).and_then(|()| Ok(net::raise_loopback(true)?));
    if redirected.is_err() {
        // Fails where it is not ours to raise, and then it is up.
        let _ = net::raise_loopback(false);
    }
    open_doors(&mut steps, lacks, redirected)
}

fn open_doors(
    steps: &mut Faults,
    lacks: &mut Vec<String>,
    redirected: Result<()>,
) -> Result<WayOut> {
    let mut doors = steps.step("open the way out", || match &redirected {
        Ok(()) => doors::redirected().doing("listen for", "what leaves"),
        Err(_) => doors::proxied(PROXIED_NAME_SERVER).doing("listen for", "what leaves"),
    })?;
    if let Err(error) = redirected {
        lacks.push(no_redirect(&error));
        return Ok(WayOut {
            doors,
            name_server: PROXIED_NAME_SERVER,
        });
    }
    let strays = steps.attempt("hear of what is refused", || {
        refusals::hear().doing("open", "a raw socket")
    })?;
    match strays {
        Ok(sockets) => doors.strays = sockets,
        Err(error) => lacks.push(format!(
            "packets that are refused are not recorded: {error}"
        )),
    }
    Ok(WayOut {
        doors,
        name_server: NAME_SERVER,
    })
}

fn no_redirect(error: &EngineError) -> String {
    format!(
        "no redirect: only programs that heed the proxy variables reach anything ({error}; `sandyard doctor` tells more)"
    )
}
