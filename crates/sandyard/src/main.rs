//! The Sandyard program: one binary with every role.
//!
//! Roles that must not have threads (`launcher`, `agent`, `sudo` inside a sandbox) are told apart before anything else
//! happens; the rest is the command line for people, one command a file in `commands/`.
#![forbid(unsafe_code)]

mod cli;
mod commands;
mod global;
mod listeners;
mod output;
mod role;
mod selftest;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = role::run_if_asked() {
        return code;
    }
    cli::main()
}
