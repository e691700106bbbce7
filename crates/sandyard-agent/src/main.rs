//! The agent as a program of its own.

use std::process::ExitCode;

use sandyard_agent::{TOOLS_PORT, Tools, probe};

fn main() -> ExitCode {
    // Alone it has no tools; what it has there instead tells about itself, for tests.
    let tools = Tools {
        port: TOOLS_PORT,
        run: probe::run,
    };
    sandyard_agent::command::main(std::env::args_os().skip(1), Some(tools))
}
