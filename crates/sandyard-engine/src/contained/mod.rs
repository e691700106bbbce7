//! The first process of a container that somebody else's engine made, and the way from outside to its agent.
//!
//! A container engine such as Docker makes the namespaces, mounts and limits; what is left is done by this program, put into the
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
//! --user NAME        who commands run as when nobody is named: a name, or an image's `USER` (`1000`, `node:node`); default `user`.
//!                    An account `user` is there in any case; accounts that are missing are added
//! --workdir PATH     where commands start when no folder is named; made if it is missing, and then the user's
//! --env KEY=VALUE    a variable of every command; may be repeated. The image's own, `PATH` among them, are not taken from the
//!                    environment of this process: whoever starts it says what commands get, here or by `POST /init`
//! --tools-port PORT  where the host finds the tool server, if not on 6060
//! --way-out          the only link is `lo` (Docker's network `none`): everything that is sent elsewhere comes to the agent
//! ```
//!
//! Capabilities it needs at the start, all of which it gives up but for those that root inside is to keep
//! ([`privileges::KEPT`]): `SETPCAP`, and with `--way-out` `NET_ADMIN` and `NET_RAW`. Without `NET_ADMIN` programs
//! inside have to use the proxy that their variables name.
//!
//! Files:
//!
//! ```text
//! /.sandyard/gateway.pem       the gateway's certificate, if programs are to trust it; put there before the start
//! /run/sandyard/agent.sock     the host's door, for root alone
//! 127.0.0.1:49983              everybody's door: shut to all until `POST /init` has brought an access token
//! ```
//!
//! `SIGTERM` (`docker stop`) ends the commands and then the container.

mod accounts;
mod door;
mod folders;
mod options;
pub mod privileges;
mod setup;

use std::ffi::OsString;
use std::io::{self, Write};

use options::Options;
use sandyard_agent::{AgentConfig, Tools};

/// Acts as `contained` or `link` if the first of the arguments says so. Returns the exit code.
///
/// `tools` is the tool server that a container gets. To be called by a process with a single thread.
pub fn main_if_asked(
    mut arguments: impl Iterator<Item = OsString>,
    tools: Option<Tools>,
) -> Option<u8> {
    match arguments.next()?.to_str()? {
        "contained" => Some(contain(arguments, tools)),
        "link" => {
            // `docker exec` gives the container's capabilities, of which a link needs none.
            if let Err(error) = sandyard_confine::caps::confine_to(0) {
                say(&error);
            }
            Some(sandyard_link::inside::main(arguments))
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
            say(&error);
            1
        }
    }
}

/// Tells who reads the container's log.
fn say(problem: &dyn std::fmt::Display) {
    let _ = writeln!(io::stderr(), "sandyard: {problem}");
}
