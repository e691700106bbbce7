//! The addresses of this host, on which its services listen.

mod netlink;
mod proc_files;

use std::net::IpAddr;

/// The addresses of all interfaces, without loopback ones, which are closed as a class. Cheap: one request to the kernel.
pub fn host_addresses() -> Vec<IpAddr> {
    let mut addresses = netlink::addresses().unwrap_or_else(|err| {
        // A sandbox must not reach this host just because netlink is forbidden here.
        tracing::debug!(%err, "Cannot read this host's addresses by netlink; reading them from /proc");
        proc_files::addresses()
    });
    addresses.retain(|address| !address.is_loopback());
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn the_kernel_tells_every_address_that_its_files_list() {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            // It tells more: those of interfaces that are down are not in the files.
            let from_kernel = host_addresses();
            let is_untold =
                |address: &IpAddr| !from_kernel.contains(address) && !address.is_loopback();
            let Some(address) = proc_files::addresses().into_iter().find(is_untold) else {
                return;
            };
            // One that came in between is told the next time.
            assert!(Instant::now() < end, "{address} is not in {from_kernel:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn the_address_that_packets_leave_by_is_an_own_one() {
        for (any, outside) in [
            ("0.0.0.0:0", "203.0.113.1:9"),
            ("[::]:0", "[2001:db8::1]:9"),
        ] {
            // Nothing is sent: connecting only chooses the address. A host may have no way out.
            let socket = UdpSocket::bind(any);
            if let Ok(socket) = socket.and_then(|socket| socket.connect(outside).map(|()| socket)) {
                let address = socket.local_addr().unwrap().ip();
                assert!(host_addresses().contains(&address), "{address}");
            }
        }
    }

    #[test]
    fn loopback_addresses_are_left_out() {
        assert!(!host_addresses().iter().any(IpAddr::is_loopback));
    }
}
