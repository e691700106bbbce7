//! Counts blocked packets and reports them to the gateway, so that people can see why a program waits.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use rustix::net::RecvFlags;
use sandyard_wire::egress::FromAgent;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Egress;
use super::listener::PAUSE;
use super::packet::{self, Destination, SEEN_BYTES};

/// How long packets to a destination are counted before they are reported.
const WINDOW: Duration = Duration::from_secs(1);

/// Maximum number of destinations in a window; packets to others are counted together.
const MAX_DESTINATIONS: usize = 256;

/// Maximum number of packets that are counted in a window. In a flood the kernel drops the rest, so counts are lower bounds.
const MAX_PACKETS: usize = 4096;

/// Stands for all destinations beyond the maximum: a reserved protocol without an address.
const OTHER_DESTINATIONS: Destination = Destination {
    protocol: 255,
    address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    port: None,
};

/// Counts packets forever. Without packets there is no timer.
pub(super) async fn watch(egress: Rc<Egress>, socket: AsyncFd<OwnedFd>) {
    loop {
        let Some(first) = next(&socket).await else {
            continue;
        };
        let mut counts = BTreeMap::new();
        count(&mut counts, first);
        let end = Instant::now() + WINDOW;
        for _ in 0..MAX_PACKETS {
            match timeout_at(end, next(&socket)).await {
                Ok(Some(destination)) => count(&mut counts, destination),
                Ok(None) => {}
                Err(_) => break,
            }
        }
        sleep_until(end).await;
        report(&egress, counts).await;
    }
}

fn count(counts: &mut BTreeMap<Destination, u64>, destination: Destination) {
    let is_known = counts.contains_key(&destination);
    let counted = match is_known || counts.len() < MAX_DESTINATIONS {
        true => destination,
        false => OTHER_DESTINATIONS,
    };
    *counts.entry(counted).or_default() += 1;
}

/// Reports the counts to the gateway. Without a gateway they are dropped.
async fn report(egress: &Egress, counts: BTreeMap<Destination, u64>) {
    for (destination, count) in counts {
        let message = FromAgent::BlockedPackets {
            protocol: destination.protocol,
            address: destination.address,
            port: destination.port,
            count,
        };
        if egress.channels.send(&message, None).await.is_err() {
            return;
        }
    }
}

/// The next packet's destination; `None` when it is not counted.
async fn next(socket: &AsyncFd<OwnedFd>) -> Option<Destination> {
    match socket.async_io(Interest::READABLE, receive).await {
        Ok(destination) => destination,
        Err(_) => {
            tokio::time::sleep(PAUSE).await;
            None
        }
    }
}

/// Receives an ICMP error and finds the destination of the blocked packet in it.
fn receive(socket: &OwnedFd) -> io::Result<Option<Destination>> {
    let mut error = [0u8; SEEN_BYTES];
    let (received, _) = rustix::net::recv(socket, &mut error[..], RecvFlags::DONTWAIT)?;
    Ok(error
        .get(..received)
        .and_then(packet::blocked_packet)
        .and_then(Destination::of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_beyond_the_maximum_are_counted_together() {
        let mut counts = BTreeMap::new();
        let to = |number: u32| Destination {
            protocol: 17,
            address: Ipv4Addr::from_bits(0x0a00_0000 + number).into(),
            port: Some(1),
        };
        for number in 0..1000 {
            count(&mut counts, to(number));
            count(&mut counts, to(0));
        }
        assert_eq!(counts.len(), MAX_DESTINATIONS + 1);
        assert_eq!(counts[&to(0)], 1001);
        assert_eq!(counts[&OTHER_DESTINATIONS], 1000 - MAX_DESTINATIONS as u64);
    }
}
