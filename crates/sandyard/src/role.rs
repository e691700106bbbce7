//! Internal roles of the binary: processes that Sandyard starts itself.

use std::ffi::OsString;
use std::net::TcpListener;
use std::process::ExitCode;

use sandyard_agent::{TOOLS_PORT, Tools, ToolsStart};
use sandyard_tools::TokenHash;

/// Runs as `sudo`, launcher, agent, tool server or one of the container roles, if the arguments name one of them.
pub(crate) fn run_internal_role() -> Option<ExitCode> {
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

/// Runs the tool server in its own process in the sandbox.
fn serve_tools(start: ToolsStart) -> i32 {
    let options = sandyard_tools::Options {
        workspace: start.workspace,
        more_roots: vec![start.home.clone(), "/tmp".into()],
        home: start.home,
        token: start.token_hash.map(TokenHash::from_bytes),
        port: start.port,
    };
    let endpoints = sandyard_tools::Endpoints {
        listeners: start.listener.map(TcpListener::from).into_iter().collect(),
        connections: Some(start.connections),
    };
    match sandyard_tools::run(options, endpoints) {
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
        .any(|argument| argument == "--help" || argument == "-h")
}

fn code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
