//! The agent as a program of its own, for sandboxes that somebody else makes.

use std::ffi::OsString;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::ExitCode;

use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto};

use crate::config::{AgentConfig, DEFAULT_PORT, EgressDoors, StartFiles};

const USAGE: &str = "\
Usage: sandyard-agent [OPTION]...
Serve processes and files of this machine to the clients of a sandbox.

  --listen ADDRESS   listen on TCP (default 127.0.0.1:49983 unless --unix is given)
  --unix PATH        listen on a Unix socket whose users are trusted
  --token TOKEN      ask TCP clients for this access token
  --user NAME        the user of requests that name none (default user)
  --workdir PATH     where commands start by default
  --env KEY=VALUE    a variable for every command; may be repeated
  --init             this is the first process of a PID namespace
  --start FOLDER     run FOLDER/start, if there is one, with its output in FOLDER/start.log

The way out, through a gateway that attaches at the Unix socket; all but --proxy and --strays may be repeated:

  --redirected ADDRESS   take connections that the kernel redirects here
  --names ADDRESS        answer look-ups over UDP
  --names-tcp ADDRESS    answer look-ups over TCP
  --proxy ADDRESS        be a proxy (CONNECT, whole URLs, SOCKS 5), and tell commands of it
  --strays               report packets that nothing carries, where loopback is the only link
";

/// Runs the program with its arguments, without the program's own name.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    // Arguments that are no text name nothing that is there, which is what the message then says.
    let arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
    match start(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            say(&mut io::stderr(), &format!("sandyard-agent: {message}\n"));
            ExitCode::FAILURE
        }
    }
}

fn start(arguments: impl Iterator<Item = String>) -> Result<(), String> {
    let Some(mut options) = Options::parse(arguments)? else {
        say(&mut io::stdout(), USAGE);
        return Ok(());
    };
    if let Some(path) = &options.unix {
        let listener = UnixListener::bind(path)
            .map_err(|error| format!("cannot listen on '{path}': {error}"))?;
        options.config.host_listener = Some(listener.into());
    }
    if let Some(address) = options.listen {
        let listener = TcpListener::bind(address)
            .map_err(|error| format!("cannot listen on {address}: {error}"))?;
        // Port 0 means any, so tell which it became.
        let bound = listener.local_addr().unwrap_or(address);
        say(&mut io::stdout(), &format!("listening on {bound}\n"));
        options.config.tcp_listener = Some(listener.into());
    }
    options.config.egress = options.way_out()?;
    crate::run::run(options.config).map_err(|error| error.to_string())
}

#[derive(Debug, Default)]
struct Options {
    listen: Option<SocketAddr>,
    unix: Option<String>,
    /// Doors of the way out: which and where.
    out: Vec<(String, SocketAddr)>,
    wants_strays: bool,
    config: AgentConfig,
}

impl Options {
    /// Reads the arguments; none when help was asked for.
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let mut options = Self::default();
        while let Some(argument) = arguments.next() {
            let (name, inline) = match argument.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (argument, None),
            };
            match name.as_str() {
                "--help" | "-h" => return Ok(None),
                "--init" => options.config.is_init = true,
                "--strays" => options.wants_strays = true,
                "--listen" | "--unix" | "--token" | "--user" | "--workdir" | "--env"
                | "--start" | "--redirected" | "--names" | "--names-tcp" | "--proxy" => {
                    let value = inline
                        .or_else(|| arguments.next())
                        .ok_or_else(|| format!("{name} needs a value"))?;
                    options.set(&name, value)?;
                }
                _ => return Err(format!("unknown argument '{name}', try --help")),
            }
        }
        if options.listen.is_none() && options.unix.is_none() {
            options.listen = Some(SocketAddr::from(([127, 0, 0, 1], DEFAULT_PORT)));
        }
        Ok(Some(options))
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        match name {
            "--listen" => self.listen = Some(address(&value)?),
            "--redirected" | "--names" | "--names-tcp" | "--proxy" => {
                self.out.push((name.to_owned(), address(&value)?));
            }
            "--unix" => self.unix = Some(value),
            "--token" => self.config.access_token = Some(value),
            "--user" => self.config.default_user = value,
            "--workdir" => self.config.default_workdir = Some(value),
            "--start" => {
                let folder = PathBuf::from(value);
                let log = folder.join("start.log");
                self.config.start = Some(StartFiles { folder, log });
            }
            _ => {
                let pair = value.split_once('=');
                let (key, value) = pair.ok_or_else(|| format!("'{value}' is not KEY=VALUE"))?;
                self.config.env.insert(key.to_owned(), value.to_owned());
            }
        }
        Ok(())
    }
}

impl Options {
    /// Binds the doors of the way out, and says where each of them is.
    fn way_out(&self) -> Result<Option<EgressDoors>, String> {
        if self.out.is_empty() && !self.wants_strays {
            return Ok(None);
        }
        let mut doors = EgressDoors::default();
        for (name, address) in &self.out {
            let cannot = |error| format!("cannot listen on {address}: {error}");
            let fd: OwnedFd = match name.as_str() {
                "--names" => UdpSocket::bind(address).map_err(cannot)?.into(),
                _ => TcpListener::bind(address).map_err(cannot)?.into(),
            };
            let bound = crate::egress::local_address(&fd).unwrap_or(*address);
            let name = name.trim_start_matches('-');
            say(&mut io::stdout(), &format!("{name} on {bound}\n"));
            match name {
                "names" => doors.names.push(fd),
                "names-tcp" => doors.names_tcp.push(fd),
                "redirected" => doors.redirected.push(fd),
                _ => doors.proxy = Some(fd),
            }
        }
        if self.wants_strays {
            let refusals = refusals().map_err(|error| format!("cannot hear of refusals: {error}"));
            doors.strays = refusals?;
        }
        Ok(Some(doors))
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("'{text}' is no address"))
}

/// Raw sockets that hear of every packet that was refused.
fn refusals() -> io::Result<Vec<OwnedFd>> {
    let raw = |family, protocol| {
        let flags = SocketFlags::CLOEXEC;
        rustix::net::socket_with(family, SocketType::RAW, flags, Some(protocol))
    };
    Ok(vec![
        raw(AddressFamily::INET, ipproto::ICMP)?,
        raw(AddressFamily::INET6, ipproto::ICMPV6)?,
    ])
}

/// Writes a message; a closed terminal is no reason to fail.
fn say(to: &mut impl io::Write, message: &str) {
    let _ = to.write_all(message.as_bytes());
    let _ = to.flush();
}
