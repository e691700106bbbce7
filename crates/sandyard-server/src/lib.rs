//! HTTP: dialects, streams, previews, documentation.
//!
//! A dialect translates between its contract and the verbs of `sandyard-service`; it decides nothing. [`router`] lists every route
//! with what it requires of its caller. A module imports modules of its own row or of rows below; dialects never import each other.
//! The test `architecture` checks that there are no cycles.
//!
//! | module | holds |
//! |---|---|
//! | `serve` | the server from its settings to its end |
//! | `router`, `openapi` | every route on one page; the document that describes them |
//! | `preview` | ports of sandboxes, over `sandyard-preview` |
//! | `operations`, `internal` | health, info and metrics; requests of other nodes |
//! | `native`, `docker`, `e2b`, `mcp`, `accounts` | the dialects |
//! | `envelope` | the native routes with every response in an envelope, for the JWT contract |
//! | `files`, `stream` | files of any size; commands, terminals and logs as they happen |
//! | `actions`, `model` | what several dialects do in the same way; what they read and show in the same way |
//! | `tool_server` | the client of the tool server in a sandbox |
//! | `forwarding`, `visibility`, `links` | how requests reach a port of a sandbox; which sandboxes they see; URLs of ports |
//! | `middleware`, `streamed_json` | request ids, credentials, access log, limits; JSON responses with long texts |
//! | `prelude`, `call` | what almost every handler uses; its caller, the service, the URLs of the response |
//! | `extract`, `route`, `access` | bodies, queries and paths; a route and what it requires of its caller |
//! | `app` | what every handler uses |
//! | `audit`, `rate_limit`, `url_client`, `write_check`, `metrics` | services that `app` holds |
//! | `listen` | sockets, TLS, graceful shutdown |
//! | `bounds`, `error`, `time` | limits of fields; failures; small helpers |
#![forbid(unsafe_code)]

mod access;
mod accounts;
mod actions;
mod app;
mod audit;
mod bounds;
mod call;
mod docker;
mod e2b;
mod envelope;
mod error;
mod extract;
mod files;
mod forwarding;
mod internal;
mod json_body;
mod links;
pub mod listen;
mod mcp;
mod metrics;
mod middleware;
mod model;
mod native;
mod noted_sandbox;
mod openapi;
mod operations;
mod prelude;
mod preview;
mod rate_limit;
mod route;
pub mod router;
pub mod serve;
mod stream;
mod streamed_json;
mod time;
mod tool_server;
mod url_client;
mod visibility;
mod write_check;

pub use access::Access;
pub use app::{App, AuthMode, ServerSettings};
pub use error::ApiError;
pub use listen::Listener;
pub use router::openapi_for;
