//! The first process of every sandbox: processes, terminals, files, watches and ports.
//!
//! The agent speaks the protocol of [`sandyard_wire`] at two doors: a Unix socket that the host bound, where everybody
//! is trusted, and TCP, where the access token is asked for. It is one thread that never waits for anything but its
//! event loop: files are read and written in pieces with plain system calls, and commands are forked directly.
//!
//! ```text
//!  server ─▶ route ─▶ auth ─┬▶ process/     commands: minder, pump, ring, stream
//!  (doors)                  ├▶ filesystem/  stat, list, make, move, remove
//!                           ├▶ watch/       inotify, shared by all watchers
//!                           ├▶ files/       contents: range, gzip, multipart
//!                           ├▶ egress/      the way out: channels to gateways
//!                           ├▶ start/       what the template wants to have running
//!                           ├▶ tools/       the tool server, a fork that connections are handed to
//!                           └▶ host, dial, metrics
//! ```
//!
//! It deliberately knows nothing of namespaces, cgroups or the host: whoever starts it has built the sandbox already.
//! Operations on files are the agent's own, as root of the sandbox; the user a request names decides about `~`, about
//! who owns new files and about who commands run as. Root inside may tamper with the agent and loses only that sandbox.

mod activity;
mod auth;
mod body;
mod call;
pub mod command;
mod config;
mod deaths;
mod dial;
mod egress;
mod event_loop;
mod files;
mod filesystem;
mod fs;
mod host;
mod limits;
mod metrics;
mod path;
pub mod probe;
mod process;
mod query;
mod ready;
mod reap;
mod route;
mod run;
mod server;
mod settings;
mod socket;
mod start;
mod state;
mod tools;
mod user;
mod watch;

pub use config::{
    AgentConfig, DEFAULT_PORT, DEFAULT_RING_BYTES, DEFAULT_USER, EgressDoors, StartFiles,
};
pub use run::run;
pub use tools::{TOOLS_PORT, Tools, ToolsProgram, ToolsStart};
