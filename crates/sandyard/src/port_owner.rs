//! Checks which users listen on a port of this host.
//!
//! While no server runs, any user of this host can listen on its port and wait for requests with an API key.

use std::io::ErrorKind;

use anyhow::{Context as _, bail};

/// The kernel's lists of IPv4 and IPv6 sockets.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// The kernel's code of the state LISTEN.
const LISTEN: &str = "0A";

/// Fails if a listener on a port, at any address, belongs to a user that is not trusted.
pub(crate) fn check(port: u16, trusted: &[u32]) -> anyhow::Result<()> {
    for path in TABLES {
        let table = match std::fs::read_to_string(path) {
            Ok(table) => table,
            // A kernel without IPv6 has no such file.
            Err(error) if error.kind() == ErrorKind::NotFound && path != TABLES[0] => continue,
            Err(error) => return Err(error).context(format!("reading `{path}`")),
        };
        let untrusted = owners(&table, port).find(|uid| !trusted.contains(uid));
        if let Some(uid) = untrusted {
            bail!("a program of another user (uid {uid}) listens on port {port}");
        }
    }
    Ok(())
}

/// The users with a listener on a port.
fn owners(table: &str, port: u16) -> impl Iterator<Item = u32> {
    // sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode …
    table.lines().skip(1).filter_map(move |line| {
        let columns: Vec<&str> = line.split_whitespace().take(8).collect();
        let [_, local, _, state, _, _, _, uid] = columns[..] else {
            return None;
        };
        let (_, local_port) = local.rsplit_once(':')?;
        let is_listener = state == LISTEN && u16::from_str_radix(local_port, 16).ok()? == port;
        // A user ID that cannot be parsed is not trusted.
        is_listener.then(|| uid.parse().unwrap_or(u32::MAX))
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1FA4 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 31 1 0 100 0 0 10 0
   1: 0100007F:1FA4 0100007F:C001 01 00000000:00000000 00:00000000 00000000  1001        0 32 1 0 20 4 30 10 -1
   2: 00000000:1FA5 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 33 1 0 100 0 0 10 0
";

    #[test]
    fn only_listening_sockets_count() {
        assert_eq!(owners(TABLE, 8100).collect::<Vec<_>>(), [1000]);
        assert_eq!(owners(TABLE, 8101).collect::<Vec<_>>(), [0]);
        assert_eq!(owners(TABLE, 8102).count(), 0);
    }

    #[test]
    fn a_listener_of_another_user_is_an_error() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // Not every host has IPv6.
            let Ok(listener) = TcpListener::bind(address) else {
                continue;
            };
            let port = listener.local_addr().unwrap().port();
            let own = rustix::process::geteuid().as_raw();
            assert!(check(port, &[own]).is_ok(), "{address}");
            let error = check(port, &[own + 1]).unwrap_err().to_string();
            assert!(error.contains(&format!("uid {own}")), "{error}");
        }
    }
}
