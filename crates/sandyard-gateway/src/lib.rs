//! The one door out of a sandbox.
//!
//! A sandbox's network leads nowhere. Its agent hands every connection and every look-up to the gateway over a Unix socket; the
//! gateway resolves names itself, judges by the sandbox's policy, dials, carries the bytes and writes down what happened.
//!
//! | file | holds |
//! |---|---|
//! | `gateway`, `settings` | the handle: who has a way out, and by which grant |
//! | `channel` | frames and descriptors from one agent |
//! | `sandbox` | what is known of one sandbox: grant, limits, open flows |
//! | `flow/` | one connection: what is said on it, judged, dialled, carried |
//! | `names/` | look-ups: the resolver, and answers to programs |
//! | `dial/` | connections out, direct or through an operator's proxy |
//! | `http/` | requests that are changed on the way: authority, certificates, headers |
//! | `own` | addresses of this very host |
//! | `limits` | how many, how often, how fast |
//! | `recorder` | records of flows, alike ones counted together |
//!
//! Everything that comes from a sandbox is hostile: frames, descriptors and what is said on them. A descriptor may be shared with
//! the sandbox, which can change its flags and options at any time, so nothing here relies on `O_NONBLOCK`, and every descriptor is
//! closed by its sandbox's `Closer`: a close may wait for as long as the sandbox likes.
#![forbid(unsafe_code)]

mod channel;
mod dial;
mod flow;
mod gateway;
mod http;
mod limits;
mod names;
mod own;
mod recorder;
mod sandbox;
mod settings;

#[cfg(test)]
mod tests;

pub use gateway::Gateway;
pub use own::own_addresses;
pub use settings::{FlowLimits, GatewayError, GatewaySettings};
