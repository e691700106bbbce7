//! `[e2b]`, typed.

use std::net::{IpAddr, SocketAddr};

use super::ServerSettings;
use crate::values::Values;

/// `[e2b]`: what E2B's own clients are offered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct E2bSettings {
    /// Whether the dialect has a listener of its own.
    pub is_enabled: bool,
    /// Addresses of that listener.
    pub hosts: Vec<IpAddr>,
    /// Its port.
    pub port: E2bPort,
    /// What clients put behind `{port}-{id}.`, with a port if need be; `None` for what follows from the listeners.
    pub domain: Option<String>,
    /// Whether a sandbox's id is enough to open its ports.
    pub is_traffic_public: bool,
}

/// The port of the dialect's own listener, and whether anybody insists on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum E2bPort {
    /// The operator chose it.
    Chosen(u16),
    /// It follows from `server.port`, and may be left out if it cannot be had.
    Derived(u16),
    /// There is none after `server.port`.
    None,
}

impl E2bSettings {
    pub(super) fn build(values: &Values, server: &ServerSettings) -> Self {
        let hosts = match values.addresses("e2b.host") {
            [] => server.hosts.clone(),
            hosts => hosts.to_vec(),
        };
        let port = match values.maybe_small("e2b.port") {
            Some(port) => E2bPort::Chosen(port),
            None => derived(&server.ports),
        };
        Self {
            is_enabled: values.switch("e2b.enabled"),
            hosts,
            port,
            domain: values.text("e2b.domain").map(str::to_owned),
            is_traffic_public: values.switch("e2b.public_traffic"),
        }
    }

    /// Every address and port to listen on; none if there is no listener.
    pub fn listeners(&self) -> Vec<SocketAddr> {
        let port = match self.port {
            E2bPort::Chosen(port) | E2bPort::Derived(port) if self.is_enabled => port,
            _ => return Vec::new(),
        };
        let at = |host: &IpAddr| SocketAddr::new(*host, port);
        self.hosts.iter().map(at).collect()
    }
}

/// The first port after the server's first one that is none of the server's; any free one after any free one.
fn derived(ports: &[u16]) -> E2bPort {
    match ports.first() {
        None | Some(0) => E2bPort::Derived(0),
        Some(&first) => (first..=u16::MAX)
            .skip(1)
            .find(|port| !ports.contains(port))
            .map_or(E2bPort::None, E2bPort::Derived),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_comes_after_the_servers() {
        assert_eq!(derived(&[8100]), E2bPort::Derived(8101));
        assert_eq!(derived(&[8100, 8101, 80]), E2bPort::Derived(8102));
        assert_eq!(derived(&[0]), E2bPort::Derived(0));
        assert_eq!(derived(&[u16::MAX]), E2bPort::None);
    }
}
