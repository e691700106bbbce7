//! Binds the sockets of the server: all of them or none.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

/// Connections that may wait in the kernel's queue.
const BACKLOG: u32 = 1024;

/// A listening socket.
#[derive(Debug)]
pub struct Bound {
    /// Its actual address: port 0 is replaced by the assigned port.
    pub address: SocketAddr,
    /// Whether its connections are encrypted.
    pub is_tls: bool,
    /// Whether it belongs to the E2B dialect.
    pub is_e2b: bool,
    pub(super) socket: TcpListener,
}

/// The server cannot listen on an address.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}{}", advice(.source, .address, *.is_e2b))]
pub struct BindError {
    /// The address.
    pub address: SocketAddr,
    /// Whether it is for the E2B dialect.
    pub is_e2b: bool,
    /// The cause.
    #[source]
    pub source: io::Error,
}

/// What to do about the failure, if that is known.
fn advice(error: &io::Error, address: &SocketAddr, is_e2b: bool) -> String {
    let (port, host) = match is_e2b {
        true => ("`--e2b-port` or `SANDYARD_E2B_PORT`", "`SANDYARD_E2B_HOST`"),
        false => (
            "`--port` or `SANDBOX_SERVER_PORT`",
            "`--host` or `SANDBOX_SERVER_HOST`",
        ),
    };
    match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            ": another program listens there; end it, or choose another port with {port} \
             (`ss -ltnp 'sport = :{}'` shows which one it is)",
            address.port()
        ),
        io::ErrorKind::PermissionDenied => {
            ": ports below 1024 need the capability CAP_NET_BIND_SERVICE; choose a higher one"
                .to_owned()
        }
        io::ErrorKind::AddrNotAvailable => {
            format!(": this host does not have that address; choose another with {host}")
        }
        _ => String::new(),
    }
}

impl BindError {
    /// Says whether the port is in use or requires a privilege.
    pub fn is_about_port(&self) -> bool {
        matches!(
            self.source.kind(),
            io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied
        )
    }
}

/// Listens on every address; `is_e2b`: for the E2B dialect alone. Must be called within a runtime.
///
/// # Errors
///
/// When the server cannot listen on one of them; then none stays open.
pub fn bind(addresses: &[SocketAddr], is_tls: bool, is_e2b: bool) -> Result<Vec<Bound>, BindError> {
    let bound = |&address| {
        let socket = open(address)?;
        Ok(Bound {
            address: socket.local_addr()?,
            is_tls,
            is_e2b,
            socket,
        })
    };
    let failed = |address, source| BindError {
        address,
        is_e2b,
        source,
    };
    addresses
        .iter()
        .map(|address| bound(address).map_err(|source| failed(*address, source)))
        .collect()
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    // A restarted server can bind while connections of the previous one are in TIME_WAIT.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_error_for_a_port_in_use_names_the_option() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let first = bind(&[any], false, false).unwrap();
        let error = bind(&[any, first[0].address], false, false).unwrap_err();
        assert_eq!(error.address, first[0].address);
        let text = error.to_string();
        assert!(
            text.contains("another program") && text.contains("--port"),
            "{text}"
        );
        let error = bind(&[first[0].address], false, true).unwrap_err();
        assert!(error.is_about_port());
        let text = error.to_string();
        assert!(text.contains("--e2b-port"), "{text}");
    }
}
