//! Roles of the binary that are not commands for people.

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs as `sudo`, launcher or agent if this process was started as one of them.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    if let Some(code) = sandyard_engine::sudo::main_if_called_so() {
        return Some(ExitCode::from(code));
    }
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next()?.to_str()? {
        "launcher" => {
            let arguments: Vec<OsString> = arguments.collect();
            if wants_help(&arguments) {
                return Some(crate::cli::help_of("launcher"));
            }
            let arguments = arguments.into_iter();
            Some(code(sandyard_engine::launcher::command::main(arguments)))
        }
        "agent" => Some(sandyard_agent::command::main(arguments)),
        _ => None,
    }
}

fn wants_help(arguments: &[OsString]) -> bool {
    arguments
        .iter()
        .any(|word| word == "--help" || word == "-h")
}

fn code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
