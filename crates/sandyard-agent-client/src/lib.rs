//! Client of the agent protocol; treats every reply as hostile.
//!
//! Root inside a sandbox can replace the agent, so every reply is input from an attacker. The guarantees:
//!
//! - headers, bodies, frames and lists have size limits ([`Limits`]); nothing is stored beyond them;
//! - every call has a time limit, and so has every silence of a stream;
//! - no descriptor that comes with a reply is closed on a thread of the runtime, because its sender could block that thread;
//! - no reply makes the caller panic: it becomes a [`ClientError`] of a kind that can be matched on;
//! - the agent's text that is shown to people has no control characters.
//!
//! An [`AgentClient`] is cheap to clone and shares a few idle connections for unary calls; each stream has its own.
//! It must be used within a tokio runtime, of either flavour.
//!
//! | file | holds |
//! |---|---|
//! | `endpoint` | where an agent listens, and dialling that |
//! | `unix`, `closer` | Unix sockets, on which descriptors may come; closing those |
//! | `pool`, `connection` | HTTP/1.1 connections |
//! | `call` | one request and its reply, within limits |
//! | `stream` | Connect's streams of messages |
//! | `process`, `input`, `run` | commands |
//! | `files`, `upload`, `filesystem`, `watch` | files |
//! | `host` | host-only calls |
//! | `dial` | bytes to a port inside |
//! | `egress` | egress channels |
//! | `relay` | relayed output |
#![forbid(unsafe_code)]

mod body;
mod call;
mod client;
mod closer;
mod connection;
mod dial;
mod egress;
mod endpoint;
mod error;
mod files;
mod filesystem;
mod host;
mod input;
mod limits;
mod pool;
mod process;
mod query;
mod relay;
mod run;
mod stream;
mod unix;
mod upload;
mod watch;

pub use client::AgentClient;
pub use closer::Closer;
pub use endpoint::{
    BoxedStream, Dial, Dialling, Duplex, EgressDialling, Endpoint, PortDialling, PortStream,
};
pub use error::ClientError;
pub use files::FileStream;
pub use input::InputStream;
pub use limits::Limits;
pub use process::{InputTo, ProcessIdentity, ProcessStream, StartOptions};
pub use run::{Output, RunOptions};
pub use unix::AgentStream;
pub use watch::WatchStream;

pub use sandyard_wire as wire;
