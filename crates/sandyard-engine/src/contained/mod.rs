//! The first process of a container that another engine made, and the connection from outside to its agent.
//!
//! A container engine such as Docker makes the namespaces, mounts and limits. This program does the rest. It is put into the
//! container as `/.sandyard/agent` and started there in two roles:
//!
//! ```text
//! /.sandyard/agent contained [OPTION]...   the container's first process, as root: sets up what the image lacks, becomes the agent
//! /.sandyard/agent link [--agent PATH]     what `docker exec` runs, as root, with standard input and output attached:
//!                                          many connections over those two, see [`sandyard_link`]
//! ```
//!
//! Options of `contained`:
//!
//! ```text
//! --user NAME        the user that commands run as by default: a name, or an image's `USER` (`1000`, `node:node`); default `user`.
//!                    The account `user` always exists; missing accounts are added
//! --workdir PATH     default working directory of commands; created for the user if it is missing
//! --env KEY=VALUE    a variable of every command; may be repeated. The image's own, `PATH` among them, are not taken from the
//!                    environment of this process: they must be given here or by `POST /init`
//! --tools-port PORT  port of the tool server (default 6060)
//! --egress           the only link is `lo` (Docker's network `none`): everything that is sent elsewhere goes to the agent
//! ```
//!
//! Capabilities it needs at the start, all of which it drops except those that root inside keeps
//! ([`privileges::RETAINED`]): `SETPCAP`, and with `--egress` `NET_ADMIN` and `NET_RAW`. Without `NET_ADMIN`, programs
//! inside must use the proxy that their environment names.
//!
//! Files:
//!
//! ```text
//! /.sandyard/gateway.pem       the gateway's certificate, if programs are to trust it; written before the start
//! /run/sandyard/agent.sock     the agent's socket for the host; only root may connect
//! 127.0.0.1:49983              the agent for everybody else; refuses all requests until `POST /init` has set an access token
//! ```
//!
//! `SIGTERM` (`docker stop`) ends the commands and then the container.

mod accounts;
mod folders;
mod listener;
mod options;
pub mod privileges;
mod setup;

use std::ffi::OsString;
use std::io::{self, Write};

use options::Options;
use sandyard_agent::{AgentConfig, Tools};

/// Runs `contained` or `link` if that is the first argument. Returns the exit code.
///
/// `tools` is the tool server of the container. The process must have a single thread.
pub fn main_if_asked(
    mut arguments: impl Iterator<Item = OsString>,
    tools: Option<Tools>,
) -> Option<u8> {
    match arguments.next()?.to_str()? {
        "contained" => Some(contain(arguments, tools)),
        "link" => {
            // `docker exec` grants the container's capabilities, and a link needs none of them.
            if let Err(error) = sandyard_confine::caps::confine_to(0) {
                log(&error);
            }
            Some(sandyard_link::container_end::main(arguments))
        }
        _ => None,
    }
}

fn contain(arguments: impl Iterator<Item = OsString>, tools: Option<Tools>) -> u8 {
    let arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
    let run = || -> io::Result<()> {
        let options = Options::parse(arguments)?;
        let port = options.tools_port;
        let tools = tools.map(|tools| Tools {
            port: port.unwrap_or(tools.port),
            ..tools
        });
        let config = setup::set_up(options)?;
        sandyard_agent::run(AgentConfig { tools, ..config })
    };
    match run() {
        Ok(()) => 0,
        Err(error) => {
            log(&error);
            1
        }
    }
}

/// Writes to the container's log.
fn log(problem: &dyn std::fmt::Display) {
    let _ = writeln!(io::stderr(), "sandyard: {problem}");
}
