//! The tool server of every sandbox: files, shell, browser, editors and other agents, over MCP.
//!
//! | module | holds |
//! |---|---|
//! | `server` | HTTP listeners, authentication, the MCP transports, the plain-call shim, settings routes |
//! | `tool` | a tool: name, schema, annotations, function |
//! | `registry` | all tools by name |
//! | `tool_state` | state that the tools share |
//! | `call`, `reply` | a call with its progress and cancellation; its bounded result |
//! | `workspace` | which paths tools may access |
//! | `process`, `http_client` | process groups; settings of all HTTP clients |
//! | `shell`, `files`, `search`, `browser`, `web`, `agents`, `dev`, `slides`, `media`, `todo` | the tools, one family each |
//! | `custom` | tools of the user's own MCP servers |
//!
//! The tool server runs as the sandbox's user and has no rights that the user's own commands do not have. Its callers are models:
//! arguments may be wrong in any way, and an error says what to do instead.
#![forbid(unsafe_code)]

mod agents;
mod browser;
mod call;
mod custom;
mod dev;
mod files;
mod http_client;
mod media;
mod options;
mod process;
mod registry;
mod reply;
mod search;
mod server;
mod shell;
mod slides;
mod todo;
mod tool;
mod tool_state;
mod web;
mod workspace;

pub use options::{Endpoints, Options, TokenHash};
pub use server::{run, serve, serve_stdio};
