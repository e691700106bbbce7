//! A beacon: listeners inside a neighbour sandbox that greet whoever reaches them, so that reaching it can be tried.

use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What to listen on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beacon {
    /// TCP port on all addresses of the sandbox; 0 lets the kernel choose.
    pub port: u16,
    /// Abstract Unix socket name without the leading NUL.
    pub abstract_name: String,
    /// What is sent to whoever comes.
    pub greeting: String,
    /// A file to write the greeting into.
    pub file: Option<PathBuf>,
}

/// Listens, announces the TCP port as a line of JSON, and greets until the process is ended.
///
/// # Errors
/// When a listener or the file cannot be made.
pub fn serve_beacon(beacon: &Beacon, announce: impl FnOnce(&str)) -> io::Result<()> {
    let tcp = TcpListener::bind((Ipv4Addr::UNSPECIFIED, beacon.port))?;
    let unix = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&beacon.abstract_name)?)?;
    if let Some(file) = &beacon.file {
        std::fs::write(file, &beacon.greeting)?;
    }
    announce(&format!("{{\"port\":{}}}", tcp.local_addr()?.port()));
    let greeting = beacon.greeting.clone();
    std::thread::spawn(move || greet(unix.incoming(), &greeting));
    greet(tcp.incoming(), &beacon.greeting);
    Ok(())
}

/// A visitor who leaves early is no reason to stop.
fn greet<S: Write>(visitors: impl Iterator<Item = io::Result<S>>, greeting: &str) {
    for mut visitor in visitors.flatten() {
        let _ = visitor.write_all(greeting.as_bytes());
    }
}
