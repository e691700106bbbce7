//! The launcher's command line, shared by `sandyard launcher` and the bare `sandyard-launcher`.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use sandyard_agent::Tools;

use super::{LauncherConfig, is_taken, run, sealed_program};
use crate::sys::clone::{Forked, fork};

const USAGE: &str = "usage: launcher --data-dir DIR [--idle-exit SECONDS] [--tools-port PORT] [--memory-reserve BYTES] [--detach] [--allow-faults]";

/// Reads the arguments after the program's (and subcommand's) name and runs the launcher. Returns the exit code.
///
/// `tools` is the tool server of the sandboxes. Must be called before any thread is started.
pub fn main(arguments: impl Iterator<Item = OsString>, tools: Option<Tools>) -> i32 {
    end_on_panic();
    let (config, detach) = match parse(arguments, tools) {
        Ok(parsed) => parsed,
        Err(problem) => {
            print_error(&format!("error: {problem}\n{USAGE}"));
            return 2;
        }
    };
    if let Err(error) = sealed_program::exec_if_needed() {
        print_error(&format!(
            "error: cannot run the launcher from a sealed copy in memory: {error}"
        ));
        print_error(
            "hint: allow it with `sysctl vm.memfd_noexec=0`, or install the program owned by root",
        );
        return 1;
    }
    if detach {
        match fork() {
            Ok(Forked::Parent { .. }) => return 0,
            Ok(Forked::Child) => {
                let _ = rustix::process::setsid();
                let _ = rustix::process::chdir("/");
            }
            Err(error) => {
                print_error(&format!("error: cannot detach: {error}"));
                return 1;
            }
        }
    }
    match run(&config) {
        Ok(()) => 0,
        // Another launcher has just started, which serves as well.
        Err(error) if is_taken(&error) && detach => 0,
        Err(error) => {
            print_error(&format!("error: {error}"));
            if let Some(hint) = &error.hint {
                print_error(&format!("hint: {hint}"));
            }
            1
        }
    }
}

fn parse(
    mut arguments: impl Iterator<Item = OsString>,
    tools: Option<Tools>,
) -> Result<(LauncherConfig, bool), String> {
    let mut data_dir = None;
    let mut idle_exit = None;
    let mut program = None;
    let mut tools = tools;
    let mut memory_reserve = None;
    let (mut detach, mut allow_faults) = (false, false);
    while let Some(argument) = arguments.next() {
        let mut value = || {
            arguments
                .next()
                .ok_or_else(|| format!("{} needs a value", argument.display()))
        };
        match argument.to_str() {
            Some("--data-dir") => data_dir = Some(PathBuf::from(value()?)),
            Some("--idle-exit") => {
                let text = value()?;
                let seconds = text.to_str().and_then(|text| text.parse().ok());
                idle_exit = Some(Duration::from_secs(
                    seconds.ok_or("--idle-exit needs a number of seconds")?,
                ));
            }
            Some(sealed_program::PROGRAM_FLAG) => program = Some(PathBuf::from(value()?)),
            Some("--tools-port") => {
                let text = value()?;
                let port = text.to_str().and_then(|text| text.parse().ok());
                let port = port.filter(|&port| port != 0);
                let port = port.ok_or("--tools-port needs a port number (1 to 65535)")?;
                tools = tools.map(|tools| Tools { port, ..tools });
            }
            Some("--memory-reserve") => {
                let text = value()?;
                let bytes = text.to_str().and_then(|text| text.parse().ok());
                memory_reserve = Some(bytes.ok_or("--memory-reserve needs a number of bytes")?);
            }
            Some("--detach") => detach = true,
            Some("--allow-faults") => allow_faults = true,
            _ => return Err(format!("unknown argument `{}`", argument.display())),
        }
    }
    let data_dir = data_dir.ok_or("--data-dir is required")?;
    let data_dir = std::path::absolute(&data_dir).map_err(|error| error.to_string())?;
    let program = match program {
        Some(program) => program,
        None => std::env::current_exe().map_err(|error| error.to_string())?,
    };
    Ok((
        LauncherConfig {
            data_dir,
            idle_exit,
            allow_faults,
            program,
            tools,
            memory_reserve,
        },
        detach,
    ))
}

/// Ends the process at a panic. A fork has a copy of its parent's stack: if it unwound, it would run its parent's undos.
fn end_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
}

/// Writes to standard error, which goes to the launcher's log.
fn print_error(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
