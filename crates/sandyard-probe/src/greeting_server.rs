//! A server in a neighbour sandbox that sends a greeting to every client, so that a probe can try to reach it.

use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What to listen on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GreetingServer {
    /// TCP port on all addresses of the sandbox; 0 lets the kernel choose.
    pub port: u16,
    /// Abstract Unix socket name without the leading NUL.
    pub abstract_name: String,
    /// What is sent to every client.
    pub greeting: String,
    /// A file to write the greeting into.
    pub file: Option<PathBuf>,
}

/// Listens, announces the TCP port as a line of JSON, and greets until the process is ended.
///
/// # Errors
/// When a listener or the file cannot be made.
pub fn serve_greeting(server: &GreetingServer, announce: impl FnOnce(&str)) -> io::Result<()> {
    let tcp = TcpListener::bind((Ipv4Addr::UNSPECIFIED, server.port))?;
    let unix = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&server.abstract_name)?)?;
    if let Some(file) = &server.file {
        std::fs::write(file, &server.greeting)?;
    }
    announce(&format!("{{\"port\":{}}}", tcp.local_addr()?.port()));
    let greeting = server.greeting.clone();
    std::thread::spawn(move || greet(unix.incoming(), &greeting));
    greet(tcp.incoming(), &server.greeting);
    Ok(())
}

/// Greets every client. A client that closes early is ignored.
fn greet<S: Write>(clients: impl Iterator<Item = io::Result<S>>, greeting: &str) {
    for mut client in clients.flatten() {
        let _ = client.write_all(greeting.as_bytes());
    }
}
