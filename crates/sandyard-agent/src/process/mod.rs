//! Commands: starting them, keeping their output, feeding them, ending them.
//!
//! ```text
//!            Start                      command ends                256 newer ends or 10 minutes
//!  (nothing) ─────▶ running ───────────────────────────▶ finished ─────────────────────▶ forgotten
//!                     │  ▲                                  │
//!                     └──┘ Connect, SendInput, Signal       └ Connect still answers with what is left and the end
//! ```
//!
//! A command that was started with an id to keep it by is finished, and not forgotten, until that id is released.
//!
//! [`command`] works out what to run, [`minder`] runs it, [`pump`] moves its output into the [`ring`], and each
//! [`stream`] reads the ring for one client.

mod command;
mod errand;
mod exec;
mod input;
mod keep;
mod launch;
mod minder;
mod own;
mod pump;
mod reader;
mod registry;
mod report;
mod ring;
mod rpc;
mod running;
mod signals;
mod spool;
mod stdio;
mod stream;
mod tree;

pub(crate) use command::Command;
pub(crate) use launch::{Unlisted, launch};
pub(crate) use own::{Own, OwnProcess, fork_own};
pub(crate) use registry::Registry;
pub(crate) use rpc::{connect, left, release, start, stream_input, unary};
pub(crate) use running::Process;
