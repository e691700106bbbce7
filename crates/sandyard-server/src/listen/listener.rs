//! The socket of a request.

use std::net::SocketAddr;

/// The socket that accepted a request; an extension of every request.
#[derive(Clone, Copy, Debug)]
pub struct Listener {
    /// Address of the socket.
    pub address: SocketAddr,
    /// Whether the connection is encrypted.
    pub is_tls: bool,
    /// Whether the socket belongs to the E2B dialect: its paths are those of E2B's API.
    pub is_e2b: bool,
    /// Address of the client.
    pub peer: SocketAddr,
}

impl Listener {
    /// Says whether only programs on this host can reach the socket.
    pub fn is_loopback(&self) -> bool {
        self.address.ip().is_loopback()
    }
}
