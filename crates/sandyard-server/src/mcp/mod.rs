//! The control plane over MCP, at `/mcp`: an assistant makes sandboxes and works in them with nothing but tools.
//!
//! Every tool is a verb of the native dialect: it takes the caller's credentials, asks for the same scope, calls the same handler
//! and refuses in the same words. Nothing is remembered between two requests, so any node may answer any of them.
//!
//! | file | holds |
//! |---|---|
//! | `endpoint` | the HTTP side: what comes in, and in which form the answer goes out |
//! | `conversation` | what a request tells about the conversation it belongs to |
//! | `handler` | the protocol side: the list of tools, and a call of one |
//! | `running` | calls under way, for those who cancel one by its number |
//! | `tool` | what a tool is, and what a call of it knows |
//! | `excerpt` | the beginning and the end of an output of any length |
//! | `piece` | some lines of a text of any length |
//! | `outcome` | results, and failures as results |
//! | `note` | the audit of a call |
//! | `tools/` | the tools, a family a file |

mod conversation;
mod endpoint;
mod excerpt;
mod handler;
mod note;
mod outcome;
mod piece;
mod running;
mod tool;
mod tools;

use axum::routing::get;
use sandyard_core::Scope;

use crate::access::Access;
use crate::route::{Route, undocumented_route};

/// The route of this dialect. What a single tool needs is asked when it is called.
pub(crate) fn routes() -> Vec<Route> {
    let need = Access::Scope(Scope::Read);
    let methods = get(endpoint::serve)
        .post(endpoint::serve)
        .delete(endpoint::serve);
    vec![undocumented_route(need, "/mcp", methods).audits_itself()]
}
