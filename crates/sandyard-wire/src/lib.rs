//! The agent protocol: messages, framing and signatures. No I/O.
//!
//! The agent inside every sandbox speaks the protocol of E2B's in-sandbox daemon: Connect-RPC in JSON for processes and
//! files, plain HTTP for file contents. Both ends of it are built from this crate.
//!
//! - [`process`], [`event`] and [`filesystem`]: the Connect messages, in protobuf's JSON mapping (see [`json`]).
//! - [`http`]: the JSON of the plain HTTP routes.
//! - [`host`]: messages that only the host may send; not part of E2B's protocol.
//! - [`egress`]: egress, between agent and gateway; not part of E2B's protocol.
//! - [`request`], [`query`] and [`range`]: what servers read from a request.
//! - [`frame`]: the envelope around each message of a stream.
//! - [`connect_error`]: the codes and the body of a failed call.
//! - [`signature`]: signed file URLs.
//! - [`routes`]: every path, query key and header name.
//!
//! It deliberately knows nothing of sockets, clocks or users: the caller passes those in.
#![forbid(unsafe_code)]

pub mod connect_error;
pub mod egress;
pub mod event;
pub mod filesystem;
pub mod frame;
pub mod host;
pub mod http;
pub mod json;
pub mod process;
pub mod query;
pub mod range;
pub mod request;
pub mod routes;
pub mod signature;

pub use connect_error::{Code, ConnectError};
pub use event::{EndEvent, Output, ProcessEvent};
pub use filesystem::{EntryInfo, EventType, FileType, FilesystemEvent};
pub use frame::{Decoder, Frame, FrameError};
