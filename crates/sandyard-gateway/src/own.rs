//! This host's own addresses, which its services listen on.

mod kernel;
mod listed;

use std::net::IpAddr;

/// The addresses of all interfaces, but for loopback ones, which are closed as a class. Cheap: one question to the kernel.
pub fn own_addresses() -> Vec<IpAddr> {
    let mut addresses = kernel::addresses().unwrap_or_else(|err| {
        // A sandbox must not reach this host just because somebody forbade us to ask.
        tracing::debug!(%err, "the kernel does not tell its addresses; they are read from /proc");
        listed::addresses()
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
            let from_kernel = own_addresses();
            let is_untold =
                |address: &IpAddr| !from_kernel.contains(address) && !address.is_loopback();
            let Some(address) = listed::addresses().into_iter().find(is_untold) else {
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
                assert!(own_addresses().contains(&address), "{address}");
            }
        }
    }

    #[test]
    fn loopback_addresses_are_left_out() {
        assert!(!own_addresses().iter().any(IpAddr::is_loopback));
    }
}
