//! The link between a server and the agent of a container: many connections over one stream of bytes.
//!
//! A container on any Docker daemon, here or elsewhere, may have no network, no port and no folder that it shares with the
//! server. It always has `docker exec`, whose standard input and output reach the server as one stream. The server runs
//! `/.sandyard/agent link` with it, once for each container, and carries all connections over that stream:
//!
//! ```text
//!  server                                                    container
//!    dial ───────── A ─────────▶                       ┌──▶ the agent's socket
//!    ping ───────── P ─────────▶    one stream of      │
//!    gateway ────── E ─────────▶    bytes, yamux       ├──▶ the agent's egress (`GET /egress`)
//!    gateway ◀───── T ──────────                       └─── a program's outgoing connection
//! ```
//!
//! Why yamux: its streams are symmetric, so either side opens some (HTTP/2 has them one way only), each has a window of its own,
//! so a slow reader blocks no other stream, and the crate is maintained and used between untrusted peers. It does not tell a
//! connection that has ended from one that was broken off: [`LinkStream`] adds that.
//!
//! | file | holds |
//! |---|---|
//! | `mux` | the connections over one stream |
//! | `link_stream` | one of them |
//! | `stream_kind` | what their first byte says |
//! | `frames` | egress frames |
//! | `splice` | copying between a connection and a socket |
//! | `container_end` | the container's end |
//!
//! The Docker provider is the server's end. It treats everything from the container as hostile: streams, windows and frames are
//! bounded, and a container that violates the protocol loses its link and nothing else.
#![forbid(unsafe_code)]

pub mod container_end;
mod frames;
mod link_stream;
mod mux;
pub mod splice;
mod stream_kind;
#[cfg(test)]
mod tests;

pub use frames::read_frame;
pub use link_stream::LinkStream;
pub use mux::{Inbound, Mux, Side};
pub use stream_kind::{EGRESS_READY, StreamKind};
