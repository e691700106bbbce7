//! Ports of a sandbox, from outside.

use std::collections::BTreeSet;

use serde_json::json;

use crate::Result;
use crate::client::Client;
use crate::model::Port;

/// What the kernel calls a socket that waits for connections, in `/proc/net/tcp`: `TCP_LISTEN`.
const LISTENS: &str = "0A";
/// Where the agent itself listens, in every sandbox.
const AGENT_PORT: u16 = 49983;
/// The largest table of sockets that is read.
const MAX_TABLE_BYTES: usize = 16 << 20;
/// At most so many ports are listed; a sandbox could open thousands to keep us busy.
const MAX_PORTS: usize = 200;

impl Client {
    /// The ports on which something in the sandbox listens. Wakes it.
    ///
    /// # Errors
    ///
    /// When there is no such sandbox.
    pub async fn ports(&self, sandbox: &str) -> Result<Vec<Port>> {
        let mut numbers = BTreeSet::new();
        for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
            match self.read(sandbox, table, MAX_TABLE_BYTES).await {
                Ok(table) => numbers.extend(listening(&String::from_utf8_lossy(&table))),
                // A sandbox may know only one of the two.
                Err(error) if error.code() == Some("file_not_found") => {}
                Err(error) => return Err(error),
            }
        }
        numbers.remove(&AGENT_PORT);
        let mut ports = Vec::new();
        for number in numbers.into_iter().take(MAX_PORTS) {
            ports.push(self.port(sandbox, number).await?);
        }
        Ok(ports)
    }

    /// Where a port of a sandbox is reached, and by whom. Wakes nothing.
    ///
    /// # Errors
    ///
    /// When there is no such sandbox.
    pub async fn port(&self, sandbox: &str, port: u16) -> Result<Port> {
        let port = port.to_string();
        let route = ["sandboxes", sandbox, "ports", &port];
        self.get("looking at a port", route).await
    }

    /// Where a port of a sandbox is reached by those who may.
    ///
    /// # Errors
    ///
    /// When there is no such sandbox.
    pub async fn expose_port(&self, sandbox: &str, port: u16) -> Result<Port> {
        let body = json!({ "sandbox_id": sandbox, "port": port });
        self.post("opening a port", ["sandboxes", "expose-port"], &body)
            .await
    }

    /// Lets anybody open a port.
    ///
    /// # Errors
    ///
    /// When there is no such sandbox.
    pub async fn share_port(&self, sandbox: &str, port: u16) -> Result<Port> {
        self.set_public(sandbox, port, true).await
    }

    /// Takes that back.
    ///
    /// # Errors
    ///
    /// When there is no such sandbox.
    pub async fn unshare_port(&self, sandbox: &str, port: u16) -> Result<Port> {
        self.set_public(sandbox, port, false).await
    }

    async fn set_public(&self, sandbox: &str, port: u16, public: bool) -> Result<Port> {
        let port = port.to_string();
        let route = ["sandboxes", sandbox, "ports", &port];
        self.post("sharing a port", route, &json!({ "public": public }))
            .await
    }
}

/// The ports in the kernel's tables of sockets that somebody listens on.
fn listening(tables: &str) -> BTreeSet<u16> {
    let port = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let (_, port) = words.next()?.rsplit_once(':')?;
        let state = words.nth(1)?;
        let port = u16::from_str_radix(port, 16).ok()?;
        (state == LISTENS && port > 0).then_some(port)
    };
    tables.lines().filter_map(port).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_ports_are_found_in_both_tables() {
        let tables = "  sl  local_address rem_address   st tx_queue rx_queue
   0: 00000000:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000 1000
   1: 0100007F:A0B2 0100007F:1F40 01 00000000:00000000 00:00000000 00000000 1000
  sl  local_address                         remote_address                        st
   0: 00000000000000000000000000000000:1F40 00000000000000000000000000000000:0000 0A 0
   1: 00000000000000000000000000000000:0050 00000000000000000000000000000000:0000 0A 0
nonsense : 0A
";
        assert_eq!(listening(tables), BTreeSet::from([80, 8000]));
    }
}
