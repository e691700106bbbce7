//! Who is let in at all, before anything is done for a connection.

use sandyard_core::network::pattern::canonical_name;
use sandyard_core::network::{Denial, FlowVerdict, Protocol};
use tokio::sync::OwnedSemaphorePermit;

use super::Opening;
use crate::gateway::Inner;
use crate::sandbox::{MAX_CLOSING, Sandbox, too_many};

/// What a connection needs to be let in: a place among its sandbox's, among its owner's and among all.
#[derive(Debug)]
pub(crate) struct Slots {
    _of_sandbox: OwnedSemaphorePermit,
    _of_owner: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

/// Finds room for one more connection. Before anything is done for it: what waits for its turn costs a descriptor already.
pub(crate) fn admit(gateway: &Inner, sandbox: &Sandbox) -> Result<Slots, Denial> {
    sandbox.may_open()?;
    if sandbox.closer.pending() > MAX_CLOSING {
        let text = format!("{MAX_CLOSING} connections that take long to close");
        return Err(too_many(text));
    }
    let of_sandbox = sandbox.connections.clone().try_acquire_owned();
    let of_owner = sandbox.owner_connections.clone().try_acquire_owned();
    let of_all = gateway.connections.clone().try_acquire_owned();
    Ok(Slots {
        _of_sandbox: of_sandbox.map_err(|_| {
            let most = sandbox.limits.connections;
            too_many(format!("{most} connections at once"))
        })?,
        _of_owner: of_owner.map_err(|_| {
            let most = gateway.max_owner_connections();
            too_many(format!(
                "{most} connections of one owner's sandboxes at once"
            ))
        })?,
        _of_all: of_all.map_err(|_| {
            let most = gateway.max_connections;
            too_many(format!("{most} connections of all sandboxes at once"))
        })?,
    })
}

/// Ends a connection that there is no room for.
pub(crate) fn turn_away(gateway: &Inner, sandbox: &Sandbox, opening: Opening, denial: Denial) {
    let mut flow = sandbox.flow(Protocol::Tcp);
    flow.address = opening.host.parse().ok();
    flow.name = canonical_name(&opening.host).filter(|_| flow.address.is_none());
    flow.port = Some(opening.port);
    flow.verdict = FlowVerdict::Denied;
    flow.denial = Some(denial);
    sandbox.closer.abort(opening.descriptor);
    gateway.recorder.record(sandbox, flow);
}
