//! Ports of a sandbox.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use serde_json::json;

use crate::Result;
use crate::client::Client;
use crate::model::Port;

/// State of a listening socket in `/proc/net/tcp`: `TCP_LISTEN`.
const LISTENS: &str = "0A";
/// Ports of the egress listeners and of the agent in every sandbox.
const INTERNAL_PORTS: RangeInclusive<u16> = 49_980..=49_983;
/// Largest socket table that is read, in bytes.
const MAX_TABLE_BYTES: usize = 16 << 20;
/// Maximum number of listed ports: a hostile sandbox could open thousands.
const MAX_PORTS: usize = 200;

impl Client {
    /// Lists the ports on which programs in the sandbox listen. Wakes the sandbox.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist.
    pub async fn ports(&self, sandbox: &str) -> Result<Vec<Port>> {
        let mut numbers = BTreeSet::new();
        for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
            match self.read(sandbox, table, MAX_TABLE_BYTES).await {
                Ok(table) => numbers.extend(listening(&String::from_utf8_lossy(&table))),
                // A sandbox may have only one of the two files.
                Err(error) if error.code() == Some("file_not_found") => {}
                Err(error) => return Err(error),
            }
        }
        numbers.retain(|port| !INTERNAL_PORTS.contains(port));
        let mut ports = Vec::new();
        for number in numbers.into_iter().take(MAX_PORTS) {
            ports.push(self.port(sandbox, number).await?);
        }
        Ok(ports)
    }

    /// Returns the address of a port and who may open it. Does not wake the sandbox.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist.
    pub async fn port(&self, sandbox: &str, port: u16) -> Result<Port> {
        let port = port.to_string();
        let route = ["sandboxes", sandbox, "ports", &port];
        self.get("fetching the address of a port", route).await
    }

    /// Returns the preview URL of a port.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist.
    pub async fn expose_port(&self, sandbox: &str, port: u16) -> Result<Port> {
        let body = json!({ "sandbox_id": sandbox, "port": port });
        self.post(
            "fetching the URL of a port",
            ["sandboxes", "expose-port"],
            &body,
        )
        .await
    }

    /// Makes a port public.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist.
    pub async fn share_port(&self, sandbox: &str, port: u16) -> Result<Port> {
        self.set_public(sandbox, port, true).await
    }

    /// Makes a port private.
    ///
    /// # Errors
    ///
    /// If the sandbox does not exist.
    pub async fn unshare_port(&self, sandbox: &str, port: u16) -> Result<Port> {
        self.set_public(sandbox, port, false).await
    }

    async fn set_public(&self, sandbox: &str, port: u16, public: bool) -> Result<Port> {
        let port = port.to_string();
        let route = ["sandboxes", sandbox, "ports", &port];
        self.post(
            "changing access to a port",
            route,
            &json!({ "public": public }),
        )
        .await
    }
}

/// Parses the listening ports of the kernel's socket tables.
fn listening(tables: &str) -> BTreeSet<u16> {
    let port = |line: &str| {
        let mut columns = line.split_whitespace().skip(1);
        let (_, port) = columns.next()?.rsplit_once(':')?;
        let state = columns.nth(1)?;
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
