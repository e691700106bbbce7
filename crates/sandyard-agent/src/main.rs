//! The agent as a program of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    sandyard_agent::command::main(std::env::args_os().skip(1))
}
