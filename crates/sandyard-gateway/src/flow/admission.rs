//! Admission of connections, before anything is done for them.

use sandyard_core::network::pattern::canonical_name;
use sandyard_core::network::{Denial, FlowVerdict, Protocol};
use tokio::sync::OwnedSemaphorePermit;

use super::Opening;
use crate::gateway::Inner;
use crate::sandbox::{MAX_CLOSING, Sandbox, too_many};

/// The slots of an admitted connection: its sandbox's, its owner's and the gateway's.
#[derive(Debug)]
pub(crate) struct FlowSlots {
    _of_sandbox: OwnedSemaphorePermit,
    _of_owner: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

/// Takes the slots of a connection. Called before anything else, because even a waiting connection costs a descriptor.
pub(crate) fn admit(gateway: &Inner, sandbox: &Sandbox) -> Result<FlowSlots, Denial> {
    sandbox.may_open()?;
    if sandbox.closer.pending() > MAX_CLOSING {
        let text = format!("{MAX_CLOSING} connections that are slow to close");
        return Err(too_many(text));
    }
    let of_sandbox = sandbox.connections.clone().try_acquire_owned();
    let of_owner = sandbox.owner_connections.clone().try_acquire_owned();
    let of_all = gateway.connections.clone().try_acquire_owned();
    Ok(FlowSlots {
        _of_sandbox: of_sandbox.map_err(|_| {
            let max = sandbox.limits.connections;
            too_many(format!("{max} open connections"))
        })?,
        _of_owner: of_owner.map_err(|_| {
            let max = gateway.max_owner_connections();
            too_many(format!("{max} open connections of one owner's sandboxes"))
        })?,
        _of_all: of_all.map_err(|_| {
            let max = gateway.max_connections;
            too_many(format!("{max} open connections of all sandboxes"))
        })?,
    })
}

/// Ends and records a connection that was not admitted.
pub(crate) fn reject(gateway: &Inner, sandbox: &Sandbox, opening: Opening, denial: Denial) {
    let mut flow = sandbox.flow(Protocol::Tcp);
    flow.address = opening.host.parse().ok();
    flow.name = canonical_name(&opening.host).filter(|_| flow.address.is_none());
    flow.port = Some(opening.port);
    flow.verdict = FlowVerdict::Denied;
    flow.denial = Some(denial);
    sandbox.closer.abort(opening.descriptor);
    gateway.recorder.record(sandbox, flow);
}
