//! The first process of every sandbox: processes, terminals, files, watches and ports.
//!
//! The agent serves the protocol of [`sandyard_wire`] on two listeners: a Unix socket that the host bound, where every
//! caller is trusted, and TCP, where callers need the access token. It is one thread that blocks only in its event
//! loop: files are read and written in pieces with plain system calls, and commands are forked directly.
//!
//! ```text
//!  server ─▶ route ─▶ auth ─┬▶ process/     commands: supervisor, pump, ring, stream
//!  (listeners)              ├▶ filesystem/  stat, list, make, move, remove
//!                           ├▶ watch/       inotify, shared by all watchers
//!                           ├▶ files/       contents: range, gzip, multipart
//!                           ├▶ egress/      connections and look-ups for the gateway
//!                           ├▶ start/       the template's start program and services
//!                           ├▶ tools/       the tool server, a fork that gets connections
//!                           └▶ host, dial, metrics
//! ```
//!
//! It deliberately knows nothing of namespaces, cgroups or the host: the sandbox exists before the agent starts.
//! The agent accesses files as root of the sandbox. The user that a request names decides what `~` means, who owns new
//! files and who runs commands. Root inside may tamper with the agent, and harms only its own sandbox.

mod activity;
mod auth;
mod body;
mod call;
pub mod command;
mod config;
mod dial;
mod egress;
mod event_loop;
mod files;
mod filesystem;
mod fs;
mod host;
mod limits;
mod metadata;
mod metrics;
mod path;
pub mod probe;
mod process;
mod ready;
mod reap;
mod restart_limit;
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
mod workdir;

pub use config::{
    AgentConfig, DEFAULT_PORT, DEFAULT_RING_BYTES, DEFAULT_USER, EgressListeners, StartFiles,
};
pub use run::run;
pub use tools::{TOOLS_PORT, Tools, ToolsProgram, ToolsStart};
