//! The Sandyard program: one binary with every role.
//!
//! `role` handles the roles that must not have threads: `launcher`, `agent`, `sudo` in a sandbox, `contained` and `link` in a
//! container, `tool-server` in a cloud sandbox. Everything else is the command line, with one file for each command in `commands/`.
#![forbid(unsafe_code)]

mod cli;
mod commands;
mod completion;
mod contexts;
mod global;
mod help;
mod output;
mod port_owner;
mod role;
mod selftest;
mod tool_server;

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = role::run_internal_role() {
        return code;
    }
    cli::main()
}
