//! The agent as a stand-alone program, for sandboxes of another creator.

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

use crate::config::{AgentConfig, DEFAULT_PORT, EgressListeners, StartFiles};
use crate::tools::Tools;

/// Maximum size of a settings file in bytes: as many variables as a process can have.
const MAX_SETTINGS_BYTES: usize = 2 << 20;

const USAGE: &str = "\
Usage: sandyard agent [OPTION]...
Serve processes and files of this machine to the clients of a sandbox.

  --listen ADDRESS   listen on TCP (default 127.0.0.1:49983 unless --unix is given)
  --unix PATH        listen on a Unix socket whose users are trusted
  --token TOKEN      require this access token from TCP clients
  --user NAME        the user of requests that name none (default user)
  --workdir PATH     where commands start by default
  --env KEY=VALUE    a variable for every command; may be repeated
  --settings FILE    read the token and variables from a file, {\"token\": …, \"env\": {…}},
                     so that no process list shows them
  --tools PORT       port of the tool server, if this program has one (default 6060)
  --workspace PATH   the tool server's folder (default /workspace)
  --init             this is the first process of a PID namespace
  --start FOLDER     run FOLDER/start, if there is one, with its output in FOLDER/start.log,
                     and FOLDER/services/PORT when the host first dials that port

Egress, through a gateway that attaches at the Unix socket; all but --proxy and --strays may be repeated:

  --redirected ADDRESS   accept connections that the kernel redirects here
  --names ADDRESS        answer DNS queries over UDP
  --names-tcp ADDRESS    answer DNS queries over TCP
  --proxy ADDRESS        serve a proxy (CONNECT, whole URLs, SOCKS 5) and set the proxy variables of commands
  --strays               report blocked packets, where loopback is the only link
";

/// Runs the program with its arguments, without the program's name.
///
/// `tools` is this program's tool server, if it has one.
pub fn main(arguments: impl Iterator<Item = OsString>, tools: Option<Tools>) -> ExitCode {
    // A replacement character names no existing file, so the error message follows from that.
    let arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
    match start(arguments, tools) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            print(&mut io::stderr(), &format!("sandyard-agent: {message}\n"));
            ExitCode::FAILURE
        }
    }
}

fn start(arguments: impl Iterator<Item = String>, tools: Option<Tools>) -> Result<(), String> {
    let Some(mut options) = Options::parse(arguments)? else {
        print(&mut io::stdout(), USAGE);
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
        // Port 0 means any port, so print the actual one.
        let bound = listener.local_addr().unwrap_or(address);
        print(&mut io::stdout(), &format!("listening on {bound}\n"));
        options.config.tcp_listener = Some(listener.into());
    }
    options.config.egress = options.egress_listeners()?;
    crate::run::run(options.config).map_err(|error| error.to_string())
}

#[derive(Debug, Default)]
struct Options {
    listen: Option<SocketAddr>,
    unix: Option<String>,
    /// Egress listeners: the option's name and the address.
    egress: Vec<(String, SocketAddr)>,
    wants_blocked_packets: bool,
    tools_port: Option<u16>,
    config: AgentConfig,
}

impl Options {
    /// Parses the arguments; `None` when help was requested.
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
                "--strays" => options.wants_blocked_packets = true,
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
                self.egress.push((name.to_owned(), address(&value)?));
            }
            "--unix" => self.unix = Some(value),
            "--token" => self.config.access_token = Some(value),
            "--user" => self.config.default_user = value,
            "--tools" => {
                let port = value.parse().ok().filter(|&port| port != 0);
                self.tools_port = Some(port.ok_or_else(|| format!("'{value}' is not a port"))?);
            }
            "--workspace" => self.config.workspace = value.into(),
            "--workdir" => self.config.default_workdir = Some(value),
            "--settings" => self.apply(SettingsFile::read(&value)?),
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

    fn apply(&mut self, settings: SettingsFile) {
        if settings.token.is_some() {
            self.config.access_token = settings.token;
        }
        self.config.env.extend(settings.env);
    }
}

/// The file that `--settings` names.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SettingsFile {
    token: Option<String>,
    env: BTreeMap<String, String>,
}

impl SettingsFile {
    /// Reads the file. The error does not quote it, because it may hold secrets.
    fn read(path: &str) -> Result<Self, String> {
        let text = crate::fs::read_small(Path::new(path), MAX_SETTINGS_BYTES)
            .map_err(|error| format!("cannot read '{path}': {error}"))?;
        serde_json::from_slice(&text).map_err(|error| {
            format!(
                "'{path}' is not valid settings JSON (line {})",
                error.line()
            )
        })
    }
}

impl Options {
    /// Binds the egress listeners and prints their addresses.
    fn egress_listeners(&self) -> Result<Option<EgressListeners>, String> {
        if self.egress.is_empty() && !self.wants_blocked_packets {
            return Ok(None);
        }
        let mut listeners = EgressListeners::default();
        for (name, address) in &self.egress {
            let failed = |error| format!("cannot listen on {address}: {error}");
            let fd: OwnedFd = match name.as_str() {
                "--names" => UdpSocket::bind(address).map_err(failed)?.into(),
                _ => TcpListener::bind(address).map_err(failed)?.into(),
            };
            let bound = crate::egress::local_address(&fd).unwrap_or(*address);
            let name = name.trim_start_matches('-');
            print(&mut io::stdout(), &format!("{name} on {bound}\n"));
            match name {
                "names" => listeners.dns_udp.push(fd),
                "names-tcp" => listeners.dns_tcp.push(fd),
                "redirected" => listeners.redirected.push(fd),
                _ => listeners.proxy = Some(fd),
            }
        }
        if self.wants_blocked_packets {
            let sockets =
                icmp_sockets().map_err(|error| format!("cannot open ICMP sockets: {error}"));
            listeners.blocked_packets = sockets?;
        }
        Ok(Some(listeners))
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| format!("'{text}' is not a socket address such as 127.0.0.1:8080"))
}

/// Raw sockets that receive an ICMP error for every blocked packet.
fn icmp_sockets() -> io::Result<Vec<OwnedFd>> {
    let raw = |family, protocol| {
        let flags = SocketFlags::CLOEXEC;
        rustix::net::socket_with(family, SocketType::RAW, flags, Some(protocol))
    };
    Ok(vec![
        raw(AddressFamily::INET, ipproto::ICMP)?,
        raw(AddressFamily::INET6, ipproto::ICMPV6)?,
    ])
}

/// Prints a message; ignores a closed terminal.
fn print(to: &mut impl io::Write, message: &str) {
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
    fn an_invalid_settings_file_is_refused_without_quoting_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings");
        std::fs::write(&path, r#"{"token": ["secret"]}"#).unwrap();
        let error = parse(&["--settings", path.to_str().unwrap()]).unwrap_err();
        assert!(!error.contains("secret"), "{error}");
        assert!(parse(&["--settings", "/nothing/here"]).is_err());
    }
}
