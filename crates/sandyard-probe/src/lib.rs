//! The escape suite: what a hostile program tries from inside a sandbox.
//!
//! Three parts, for three places:
//!
//! - [`run()`] is the hostile program. It runs *inside* a sandbox, works through [`checks()`] and returns a [`Report`].
//!   It needs a [`Plan`]: what the host planted, so that each check reaches for something that really exists.
//! - [`host::plant`] runs *on the host*: it creates the plants and removes them when dropped, and
//!   [`host::Planted::verify`] says afterwards whether the host is unchanged.
//! - [`Suite`] combines reports and grades them, and [`render()`] prints them.
//!
//! [`resources`] is separate because it exhausts resources: fork bomb, memory, disk, busy loops.
//!
//! A check that cannot fail is worthless, so every check says what it must find when it runs on the bare host
//! ([`OnHost`]), and the tests of this crate run it there.
//!
//! This crate prints nothing and makes no sandbox: its caller does.

mod check;
mod checks;
mod child;
mod context;
mod finding;
mod grade;
mod greeting_server;
pub mod host;
mod identity;
mod mount_flags;
mod plan;
mod render;
mod report;
pub mod resources;
mod run;
mod scratch;
mod search;
mod sys;
mod task;

pub use check::{Check, OnHost, Outcome};
pub use checks::all as checks;
pub use finding::{Finding, Group, Severity, Verdict};
pub use grade::Grade;
pub use greeting_server::{GreetingServer, serve_greeting};
pub use identity::Identity;
pub use plan::{
    HostKey, HostProcess, HostQueue, HostSegment, Neighbour, NetTarget, Plan, PlanError,
    SecretFile, SocketTarget,
};
pub use render::{Paint, render};
pub use report::{Report, Suite, VerdictCounts};
pub use run::{run, run_selected};
pub use task::{Task, TaskError, perform};
