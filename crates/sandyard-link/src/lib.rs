//! Many connections over one stream of bytes: the way between a server and the agent of a container.
//!
//! A container on any Docker daemon, here or elsewhere, may have no network, no port and no folder that it shares with the
//! server. What it always has is `docker exec`, whose standard input and output reach the server as one stream. The server runs
//! `/.sandyard/agent link` that way, once for each container, and carries all connections over it:
//!
//! ```text
//!  server                                                    container
//!    dial ───────── A ─────────▶                       ┌──▶ the agent's socket
//!    ping ───────── P ─────────▶    one stream of      │
//!    gateway ────── E ─────────▶    bytes, yamux       ├──▶ the agent's way out (`GET /egress`)
//!    gateway ◀───── T ──────────                       └─── a program's connection that is to go out
//! ```
//!
//! Why yamux: its streams are symmetric, so either side opens some (HTTP/2 has them one way only), each has a window of its own,
//! so a slow reader stops nobody else, and the crate is maintained by people who run it between strangers. What it lacks is told
//! apart in [`Carried`]: a connection that has ended, and one that was broken off.
//!
//! | file | holds |
//! |---|---|
//! | `mux` | the connections over one stream |
//! | `carried` | one of them |
//! | `kind` | what their first byte says |
//! | `frames` | frames of the way out |
//! | `splice` | a connection and a socket, as if they were one |
//! | `inside` | the container's end |
//!
//! The server's end is the Docker provider's. Whatever comes from the container is hostile there: streams, windows and frames are
//! bounded, and a container that breaks the rules loses its link and nothing else.
#![forbid(unsafe_code)]

mod carried;
mod frames;
pub mod inside;
mod kind;
mod mux;
pub mod splice;
#[cfg(test)]
mod tests;

pub use carried::Carried;
pub use frames::read_frame;
pub use kind::{EGRESS_READY, Kind};
pub use mux::{Inbound, Mux, Side};
