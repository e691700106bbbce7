//! The agent as its clients see it: each test starts the program and talks to it over its sockets.
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod common;
mod egress;
mod files;
mod host;
mod limits;
mod process;
mod refusals;
mod services;
mod start;
mod tools;
mod watch;
