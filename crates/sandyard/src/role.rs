//! Roles of the binary that are not commands for people.

use std::ffi::OsString;
use std::net::TcpListener;
use std::process::ExitCode;

use sandyard_agent::{TOOLS_PORT, Tools, ToolsStart};
use sandyard_tools::TokenHash;

/// Runs as `sudo`, launcher, agent, tool server, or one of the roles in a container, if this process was started as one of them.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    if let Some(code) = sandyard_engine::sudo::main_if_called_so() {
        return Some(ExitCode::from(code));
    }
    if let Some(code) =
        sandyard_engine::contained::main_if_asked(std::env::args_os().skip(1), tools())
    {
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
            Some(code(sandyard_engine::launcher::command::main(
                arguments,
                tools(),
            )))
        }
        "agent" => Some(sandyard_agent::command::main(arguments, tools())),
        crate::tool_server::ROLE => Some(crate::tool_server::main(arguments)),
        _ => None,
    }
}

/// The tool server that sandboxes get.
fn tools() -> Option<Tools> {
    Some(Tools {
        port: TOOLS_PORT,
        run: serve_tools,
    })
}

/// Runs in the sandbox, in a process of its own.
fn serve_tools(start: ToolsStart) -> i32 {
    let options = sandyard_tools::Options {
        workspace: start.workspace,
        more_roots: vec![start.home.clone(), "/tmp".into()],
        home: start.home,
        token: start.token_hash.map(TokenHash::from_bytes),
        port: start.port,
    };
    let doors = sandyard_tools::Doors {
        listeners: start.listener.map(TcpListener::from).into_iter().collect(),
        connections: Some(start.connections),
    };
    match sandyard_tools::run(options, doors) {
        Ok(()) => 0,
        Err(error) => {
            crate::output::error(&error.into());
            1
        }
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
