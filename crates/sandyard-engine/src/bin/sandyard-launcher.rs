//! The launcher alone, for installations that want the privileged program small.

use std::process::ExitCode;

use sandyard_agent::{TOOLS_PORT, Tools, probe};

fn main() -> ExitCode {
    if let Some(code) = sandyard_engine::sudo::main_if_called_so() {
        return ExitCode::from(code);
    }
    let tools = allows_faults().then_some(Tools {
        port: TOOLS_PORT,
        run: probe::run,
    });
    let code = sandyard_engine::launcher::command::main(std::env::args_os().skip(1), tools);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// Whether this is a test's: those sandboxes have what tells about itself in place of tools.
fn allows_faults() -> bool {
    std::env::args_os().any(|argument| argument == "--allow-faults")
}
