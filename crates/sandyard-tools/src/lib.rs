//! The tool server of every sandbox: files, shell, browser, editors and other agents, over MCP.
//!
//! | module | holds |
//! |---|---|
//! | `server` | the way in: HTTP, who may, MCP in its transports, the plain shim, the seed's routes |
//! | `tool` | what a tool is: name, schema, hints, work |
//! | `registry` | every tool by name |
//! | `workshop` | what the tools share |
//! | `call`, `reply` | one call: progress and cancellation; what comes back, bounded |
//! | `workspace` | which paths tools may touch |
//! | `process`, `outgoing` | programs that end with all they started; what HTTP clients have in common |
//! | `shell`, `files`, `search`, `browser`, `web`, `agents`, `custom`, `dev`, `slides`, `media`, `todo` | the tools, a family each |
//!
//! It runs as the sandbox's user with nothing the user's own commands would not have. What calls it is a model: arguments may be
//! wrong in any way, and a failure is an answer that says what to do instead.
#![forbid(unsafe_code)]

mod agents;
mod browser;
mod call;
mod custom;
mod dev;
mod files;
mod media;
mod options;
mod outgoing;
mod process;
mod registry;
mod reply;
mod search;
mod server;
mod shell;
mod slides;
mod todo;
mod tool;
mod web;
mod workshop;
mod workspace;

pub use options::{Doors, Options, TokenHash};
pub use server::{run, serve, serve_stdio};
