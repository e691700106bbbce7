//! Whose programs listen on a port of this host, as the kernel tells.
//!
//! While no server runs, any user of this host may open its port and wait for what is sent there.

use std::io::ErrorKind;

use anyhow::{Context as _, bail};

/// Where the kernel lists the sockets, of IPv4 and of IPv6.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// The kernel's number for a socket that listens.
const LISTEN: &str = "0A";

/// Fails unless all that listens on a port, at whichever address, belongs to one of these users.
pub(crate) fn check(port: u16, trusted: &[u32]) -> anyhow::Result<()> {
    for path in TABLES {
        let table = match std::fs::read_to_string(path) {
            Ok(table) => table,
            // A kernel without IPv6 has no such table.
            Err(error) if error.kind() == ErrorKind::NotFound && path != TABLES[0] => continue,
            Err(error) => return Err(error).context(format!("reading `{path}`")),
        };
        let stranger = owners(&table, port).find(|uid| !trusted.contains(uid));
        if let Some(uid) = stranger {
            bail!("a program of another user (uid {uid}) listens on port {port}");
        }
    }
    Ok(())
}

/// The users whose sockets listen on a port.
fn owners(table: &str, port: u16) -> impl Iterator<Item = u32> {
    // sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode …
    table.lines().skip(1).filter_map(move |line| {
        let words: Vec<&str> = line.split_whitespace().take(8).collect();
        let [_, local, _, state, _, _, _, uid] = words[..] else {
            return None;
        };
        let (_, local_port) = local.rsplit_once(':')?;
        let is_meant = state == LISTEN && u16::from_str_radix(local_port, 16).ok()? == port;
        // A number that cannot be read is nobody we trust.
        is_meant.then(|| uid.parse().unwrap_or(u32::MAX))
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
    fn only_sockets_that_listen_count() {
        assert_eq!(owners(TABLE, 8100).collect::<Vec<_>>(), [1000]);
        assert_eq!(owners(TABLE, 8101).collect::<Vec<_>>(), [0]);
        assert_eq!(owners(TABLE, 8102).count(), 0);
    }

    #[test]
    fn a_port_of_another_user_is_told() {
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
