//! Egress, inside a sandbox: everything a program sends elsewhere goes to the agent, which passes it to the gateway.
//!
//! The only link is loopback. Routes make every address a local one. Rules redirect TCP and DNS to sockets that are bound here and
//! handed to the agent (`listeners.rs`), and reject the rest at once (`rules.rs`). Where the kernel has no such rules there are no
//! such routes either: programs then need the agent's proxy, which their environment names.
//!
//! Root inside can get at the descriptors (`pidfd_getfd`, or by tracing the agent). It gains nothing by it: they reach no
//! further than its own network, whose programs it controls anyway, and what the agent tells the gateway is never trusted.

mod listeners;
mod rules;

use std::net::Ipv4Addr;

use sandyard_agent::EgressListeners;
use sandyard_wire::egress::NAME_SERVER;

use crate::error::{EngineError, Result};
use crate::steps::{FaultProcess, Faults};
use crate::sys::{OperationExt, icmp, net};

/// The DNS server of a sandbox without redirects.
pub(crate) const PROXIED_NAME_SERVER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 53);

/// The egress of a sandbox.
#[derive(Debug)]
pub(crate) struct Egress {
    /// Sockets for the agent.
    pub(crate) listeners: EgressListeners,
    /// The DNS server for `/etc/resolv.conf`.
    pub(crate) name_server: Ipv4Addr,
}

/// Creates the network namespace of the sandbox and sets up its egress. Adds what the kernel cannot do to `limitations`.
pub(super) fn open(steps: &mut Faults, limitations: &mut Vec<String>) -> Result<Egress> {
    steps.step("make a network", net::enter_new_network)?;
    let redirected = steps.attempt("redirect egress", || rules::install(limitations))?;
    // After the rules, so that no packet gets past them.
    steps.step("raise the loopback link", || {
        net::raise_loopback(redirected.is_ok())
    })?;
    open_listeners(steps, limitations, redirected)
}

/// Sets up egress in the network namespace of this process, which a container engine made. Its only link is loopback, which may be
/// up already and may not be ours to change.
pub(crate) fn open_here(limitations: &mut Vec<String>) -> Result<Egress> {
    let mut steps = Faults::at(FaultProcess::Init, None);
    let redirected = rules::install(limitations).and_then(|()| Ok(net::raise_loopback(true)?));
    if redirected.is_err() {
        // Fails where we may not raise it; then it is up already.
        let _ = net::raise_loopback(false);
    }
    open_listeners(&mut steps, limitations, redirected)
}

fn open_listeners(
    steps: &mut Faults,
    limitations: &mut Vec<String>,
    redirected: Result<()>,
) -> Result<Egress> {
    let mut listeners = steps.step("open the egress listeners", || match &redirected {
        Ok(()) => listeners::redirected().operation("listen for", "egress"),
        Err(_) => listeners::proxied(PROXIED_NAME_SERVER).operation("listen for", "egress"),
    })?;
    if let Err(error) = redirected {
        limitations.push(no_redirect(&error));
        return Ok(Egress {
            listeners,
            name_server: PROXIED_NAME_SERVER,
        });
    }
    let rejected = steps.attempt("open sockets for rejected packets", || {
        icmp::open_error_sockets().operation("open", "a raw socket")
    })?;
    match rejected {
        Ok(sockets) => listeners.blocked_packets = sockets,
        Err(error) => limitations.push(format!("rejected packets are not recorded: {error}")),
    }
    Ok(Egress {
        listeners,
        name_server: NAME_SERVER,
    })
}

fn no_redirect(error: &EngineError) -> String {
    format!(
        "no redirect: only programs that use the proxy variables can reach the network ({error}; run `sandyard doctor` for details)"
    )
}
