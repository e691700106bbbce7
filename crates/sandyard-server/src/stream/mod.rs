//! Commands, terminals, logs and events as they happen.
//!
//! Nothing is queued here beyond a piece or two: a client that reads slowly slows the command down. A sandbox is in use
//! for as long as a stream of it is open.
//!
//! | file | holds |
//! |---|---|
//! | `child` | a command that belongs to a request and ends with it |
//! | `command` | its output as server-sent events |
//! | `utf8` | text from bytes that are cut anywhere |
//! | `attach` | a WebSocket to a process that runs already |
//! | `exec`, `pty` | commands and terminals over WebSocket |
//! | `socket` | what both have in common |
//! | `control` | their messages |
//! | `logs`, `events` | what was written, what happened, and what is yet to |
//! | `processes` | what runs in a sandbox |
//! | `sse` | events for clients that follow |

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

use crate::need::Need;
use crate::router::{Mounted, mount};

pub(crate) use child::Child;
pub(crate) use command::{Detach, command_events};
pub(crate) use events::{Followed, follow_events};
pub(crate) use sse::is_wanted as wants_events;

/// The routes of streams.
pub(crate) fn routes() -> Vec<Mounted> {
    let read = Need::Scope(Scope::Read);
    let used = Need::Scope(Scope::Use);
    vec![
        mount(used, routes!(command::run_command_stream)),
        mount(used, routes!(command::run_in_sandbox)),
        mount(used, routes!(exec::exec)),
        mount(used, routes!(pty::open_pty)),
        mount(read, routes!(logs::read_logs)),
        mount(used, routes!(processes::list_processes)),
        mount(used, routes!(processes::kill_process)),
        mount(used, routes!(attach::attach_process)),
    ]
}
