//! The agent as a program of its own, for sandboxes that somebody else makes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto};
use serde::Deserialize;

use crate::config::{AgentConfig, DEFAULT_PORT, EgressDoors, StartFiles};
use crate::tools::Tools;

/// Most bytes of a file of settings: as many variables as a process can be given.
const MAX_SETTINGS_BYTES: usize = 2 << 20;

const USAGE: &str = "\
Usage: sandyard agent [OPTION]...
Serve processes and files of this machine to the clients of a sandbox.

  --listen ADDRESS   listen on TCP (default 127.0.0.1:49983 unless --unix is given)
  --unix PATH        listen on a Unix socket whose users are trusted
  --token TOKEN      ask TCP clients for this access token
  --user NAME        the user of requests that name none (default user)
  --workdir PATH     where commands start by default
  --env KEY=VALUE    a variable for every command; may be repeated
  --settings FILE    take the token and variables from a file, {\"token\": …, \"env\": {…}},
                     where no list of processes shows them
  --tools PORT       have the tool server on another port than 6060, where this program has one
  --workspace PATH   the tool server's folder (default /workspace)
  --init             this is the first process of a PID namespace
  --start FOLDER     run FOLDER/start, if there is one, with its output in FOLDER/start.log,
                     and FOLDER/services/PORT when the Unix socket is asked for that port

The way out, through a gateway that attaches at the Unix socket; all but --proxy and --strays may be repeated:

  --redirected ADDRESS   take connections that the kernel redirects here
  --names ADDRESS        answer look-ups over UDP
  --names-tcp ADDRESS    answer look-ups over TCP
  --proxy ADDRESS        be a proxy (CONNECT, whole URLs, SOCKS 5), and tell commands of it
  --strays               report packets that nothing carries, where loopback is the only link
";

/// Runs the program with its arguments, without the program's own name.
///
/// `tools` is the tool server that this program has, if it has one.
pub fn main(arguments: impl Iterator<Item = OsString>, tools: Option<Tools>) -> ExitCode {
    // Arguments that are no text name nothing that is there, which is what the message then says.
    let arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
    match start(arguments, tools) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            say(&mut io::stderr(), &format!("sandyard-agent: {message}\n"));
            ExitCode::FAILURE
        }
    }
}

fn start(arguments: impl Iterator<Item = String>, tools: Option<Tools>) -> Result<(), String> {
    let Some(mut options) = Options::parse(arguments)? else {
        say(&mut io::stdout(), USAGE);
        return Ok(());
    };
    options.config.tools = tools.map(|tools| Tools {
        port: options.tools_port.unwrap_or(tools.port),
        ..tools
    });
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
    tools_port: Option<u16>,
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
                | "--settings" | "--start" | "--redirected" | "--names" | "--names-tcp"
                | "--proxy" | "--tools" | "--workspace" => {
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
            "--tools" => {
                let port = value.parse().ok().filter(|&port| port != 0);
                self.tools_port = Some(port.ok_or_else(|| format!("'{value}' is no port"))?);
            }
            "--workspace" => self.config.workspace = value.into(),
            "--workdir" => self.config.default_workdir = Some(value),
            "--settings" => self.take(SettingsFile::read(&value)?),
            "--start" => {
                let folder = PathBuf::from(value);
                let logs = folder.join("");
                self.config.start = Some(StartFiles { folder, logs });
            }
            _ => {
                let pair = value.split_once('=');
                let (key, value) = pair.ok_or_else(|| format!("'{value}' is not KEY=VALUE"))?;
                self.config.env.insert(key.to_owned(), value.to_owned());
            }
        }
        Ok(())
    }

    fn take(&mut self, settings: SettingsFile) {
        if settings.token.is_some() {
            self.config.access_token = settings.token;
        }
        self.config.env.extend(settings.env);
    }
}

/// What `--settings` names.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SettingsFile {
    token: Option<String>,
    env: BTreeMap<String, String>,
}

impl SettingsFile {
    /// What is wrong in it is not told: it may hold secrets.
    fn read(path: &str) -> Result<Self, String> {
        let text = crate::fs::read_small(Path::new(path), MAX_SETTINGS_BYTES)
            .map_err(|error| format!("cannot read '{path}': {error}"))?;
        serde_json::from_slice(&text)
            .map_err(|error| format!("'{path}' is wrong in line {}", error.line()))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Option<Options>, String> {
        Options::parse(arguments.iter().map(|text| (*text).to_owned()))
    }

    #[test]
    fn token_and_variables_can_come_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings");
        std::fs::write(&path, r#"{"token": "secret", "env": {"A": "1"}}"#).unwrap();
        let path = path.to_str().unwrap();
        let options = parse(&["--env=B=2", "--settings", path]).unwrap().unwrap();
        assert_eq!(options.config.access_token.as_deref(), Some("secret"));
        let env = [("A", "1"), ("B", "2")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(options.config.env, BTreeMap::from(env));
    }

    #[test]
    fn a_file_that_is_none_is_refused_without_its_text() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings");
        std::fs::write(&path, r#"{"token": ["secret"]}"#).unwrap();
        let error = parse(&["--settings", path.to_str().unwrap()]).unwrap_err();
        assert!(!error.contains("secret"), "{error}");
        assert!(parse(&["--settings", "/nothing/here"]).is_err());
    }
}
