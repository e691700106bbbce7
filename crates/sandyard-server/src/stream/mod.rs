//! Commands, terminals, logs and events as they happen.
//!
//! Hardly any output is buffered here: a client that reads slowly slows the command down. A sandbox is in use while one of its
//! streams is open.
//!
//! | file | holds |
//! |---|---|
//! | `child` | a command that belongs to a request and ends with it |
//! | `command` | its output as server-sent events |
//! | `utf8` | text from chunks of bytes |
//! | `attach` | a WebSocket to a process that already runs |
//! | `exec`, `pty` | commands and terminals over WebSocket |
//! | `socket` | the WebSocket that both use |
//! | `control` | its text messages |
//! | `logs`, `events` | the command log and events of sandboxes, so far and as they happen |
//! | `processes` | the commands that run in a sandbox |
//! | `sse` | server-sent events |

mod attach;
mod child;
mod command;
mod control;
mod events;
mod exec;
mod logs;
mod processes;
mod pty;
mod socket;
mod sse;
mod utf8;

use sandyard_core::Scope;
use utoipa_axum::routes;

use crate::access::Access;
use crate::route::{Route, route};

pub(crate) use child::Child;
pub(crate) use command::{Detach, command_events};
pub(crate) use events::{StreamedEvent, follow_events};
pub(crate) use sse::is_wanted as wants_events;

/// The routes of streams.
pub(crate) fn routes() -> Vec<Route> {
    let read = Access::Scope(Scope::Read);
    let used = Access::Scope(Scope::Use);
    vec![
        route(used, routes!(command::run_command_stream)),
        route(used, routes!(command::run_in_sandbox)),
        route(used, routes!(exec::exec)),
        route(used, routes!(pty::open_pty)),
        route(read, routes!(logs::read_logs)),
        route(used, routes!(processes::list_processes)),
        route(used, routes!(processes::kill_process)),
        route(used, routes!(attach::attach_process)),
    ]
}
