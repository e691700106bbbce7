//! The gateway: egress of all sandboxes.
//!
//! A sandbox has no network of its own. Its agent hands every connection and every DNS query to the gateway over a Unix socket.
//! The gateway resolves names, judges them by the sandbox's egress policy, dials, carries the bytes and records each flow.
//!
//! | file | holds |
//! |---|---|
//! | `gateway`, `settings` | the handle: attached sandboxes and their grants |
//! | `channel` | frames and descriptors from one agent |
//! | `sandbox` | the state of one sandbox: grant, limits, open flows |
//! | `flow/` | one connection: judged, dialled, carried |
//! | `names/` | DNS: the resolver, and answers to programs |
//! | `dial/` | outgoing connections, direct or through an operator's proxy |
//! | `http/` | requests that the gateway changes: certificates, headers, secrets |
//! | `host_addresses` | addresses of this host |
//! | `limits` | token buckets |
//! | `recorder` | flow records, equal refusals counted together |
//!
//! Everything that comes from a sandbox is hostile: frames, descriptors and their bytes. A descriptor may be shared with
//! the sandbox, which can change its flags and options at any time, so nothing here relies on `O_NONBLOCK`, and every descriptor is
//! closed by its sandbox's `Closer`: the sandbox can make a close block.
#![forbid(unsafe_code)]

mod channel;
mod dial;
mod flow;
mod gateway;
mod host_addresses;
mod http;
mod limits;
mod names;
mod recorder;
mod sandbox;
mod settings;

#[cfg(test)]
mod tests;

pub use gateway::Gateway;
pub use host_addresses::host_addresses;
pub use settings::{FlowLimits, GatewayError, GatewaySettings};
