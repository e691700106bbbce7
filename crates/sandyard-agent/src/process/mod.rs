//! Commands: starting them, buffering their output, writing their input, ending them.
//!
//! ```text
//!            Start                      command ends                256 newer ends or 10 minutes
//!  (nothing) ─────▶ running ───────────────────────────▶ finished ─────────────────────▶ forgotten
//!                     │  ▲                                  │
//!                     └──┘ Connect, SendInput, Signal       └ Connect still answers with the remaining output and the end
//! ```
//!
//! A command that was started with a retention id is not forgotten until that id is released.
//!
//! [`command`] prepares what to run, [`supervisor`] runs it, [`pump`] moves its output into the [`ring`], and each
//! [`stream`] reads the ring for one client.

mod child_task;
mod command;
mod exec;
mod forked_program;
mod input;
mod launch;
mod pump;
mod reader;
mod registry;
mod report;
mod retention;
mod ring;
mod rpc;
mod signals;
mod spool;
mod stdio;
mod stream;
mod supervisor;
mod tracked_process;
mod tree;

pub(crate) use command::Command;
pub(crate) use forked_program::{ForkedProcess, ForkedProgram, fork_program};
pub(crate) use launch::{LaunchOptions, launch};
pub(crate) use registry::Registry;
pub(crate) use rpc::{connect, finish_relay, release, start, stream_input, unary};
pub(crate) use tracked_process::Process;
