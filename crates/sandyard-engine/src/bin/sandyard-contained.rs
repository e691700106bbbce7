//! What runs in a container that another engine made, alone: `contained`, `link` and `agent`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = || std::env::args_os().skip(1);
    if let Some(code) = sandyard_engine::contained::main_if_asked(arguments(), None) {
        return ExitCode::from(code);
    }
    match arguments().next() {
        Some(role) if role == "agent" => sandyard_agent::command::main(arguments().skip(1), None),
        _ => sandyard_agent::command::main(["--help".into()].into_iter(), None),
    }
}
