//! The Sandyard program: one binary with every role.
//!
//! Roles that must not have threads (`launcher`, `agent`, `sudo` inside a sandbox, `contained` and `link` in a container, `tool-server` in a cloud) are told apart before anything else
//! happens; the rest is the command line for people, one command a file in `commands/`.
#![forbid(unsafe_code)]

mod cli;
mod commands;
mod global;
mod listeners;
mod output;
mod role;
mod selftest;
mod tool_server;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = role::run_if_asked() {
        return code;
    }
    cli::main()
}
