//! The escape suite: what a hostile program tries from inside a sandbox.
//!
//! Three parts, for three places:
//!
//! - [`run()`] is the hostile program. It runs *inside* a sandbox, works through [`checks()`] and returns a [`Report`].
//!   It needs a [`Plan`]: what the host planted, so that each check reaches for something that really exists.
//! - [`host::plant`] runs *on the host*: it creates the plants and takes them away again when dropped, and
//!   [`host::Planted::verify`] afterwards says whether the host is still as it was.
//! - [`Suite`] puts reports together, grades them, and [`render()`] makes them readable.
//!
//! [`resources`] is apart, because it is meant to hurt: fork bomb, memory hog, disk filler, busy loops.
//!
//! A check that cannot fail is worthless, so every check says what it must find when it runs on the bare host
//! ([`OnHost`]), and the tests of this crate run it there.
//!
//! Nothing here prints, and nothing here makes a sandbox: whoever calls does.

mod beacon;
mod check;
mod checks;
mod child;
mod context;
mod finding;
mod grade;
pub mod host;
mod identity;
mod look;
mod mountinfo;
mod plan;
mod render;
mod report;
pub mod resources;
mod run;
mod scratch;
mod sys;
mod task;

pub use beacon::{Beacon, serve_beacon};
pub use check::{Check, OnHost, Outcome};
pub use checks::all as checks;
pub use finding::{Finding, Group, Severity, Verdict};
pub use grade::Grade;
pub use identity::Identity;
pub use plan::{
    HostKey, HostProcess, HostQueue, HostSegment, Neighbour, NetTarget, Plan, PlanError,
    SecretFile, SocketTarget,
};
pub use render::{Paint, render};
pub use report::{Report, Suite, Tally};
pub use run::{run, run_selected};
pub use task::{Task, TaskError, perform};
