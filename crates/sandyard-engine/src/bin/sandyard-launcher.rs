//! The launcher alone, for installations that want the privileged program small.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = sandyard_engine::sudo::main_if_called_so() {
        return ExitCode::from(code);
    }
    let code = sandyard_engine::launcher::command::main(std::env::args_os().skip(1));
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
