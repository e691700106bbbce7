//! Packets that nothing carries: seen, counted, and told to the gateway, so that somebody learns why a program waits.

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
use super::accept::PAUSE;
use super::packet::{self, Course, SEEN_BYTES};

/// How long packets to the same place are counted before they are told of.
const WINDOW: Duration = Duration::from_secs(1);

/// Most places in a window; packets to any other are counted as one.
const MAX_PLACES: usize = 256;

/// Most packets that are looked at in a window. In a flood the kernel drops the rest, and the counts are the least there was.
const MAX_PACKETS: usize = 4096;

/// Stands for all places beyond the most: a protocol that is reserved, and no address.
const OTHERS: Course = Course {
    protocol: 255,
    address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    port: None,
};

/// Counts packets for ever. While none come there is no timer either.
pub(super) async fn watch(egress: Rc<Egress>, socket: AsyncFd<OwnedFd>) {
    loop {
        let Some(first) = next(&socket).await else {
            continue;
        };
        let mut tally = BTreeMap::new();
        count(&mut tally, first);
        let end = Instant::now() + WINDOW;
        for _ in 0..MAX_PACKETS {
            match timeout_at(end, next(&socket)).await {
                Ok(Some(course)) => count(&mut tally, course),
                Ok(None) => {}
                Err(_) => break,
            }
        }
        sleep_until(end).await;
        tell(&egress, tally).await;
    }
}

fn count(tally: &mut BTreeMap<Course, u64>, course: Course) {
    let is_known = tally.contains_key(&course);
    let place = match is_known || tally.len() < MAX_PLACES {
        true => course,
        false => OTHERS,
    };
    *tally.entry(place).or_default() += 1;
}

/// Tells the gateway. Without one nobody wants to know, and the counts are forgotten.
async fn tell(egress: &Egress, tally: BTreeMap<Course, u64>) {
    for (course, count) in tally {
        let message = FromAgent::Stray {
            protocol: course.protocol,
            address: course.address,
            port: course.port,
            count,
        };
        if egress.channels.send(&message, None).await.is_err() {
            return;
        }
    }
}

/// The next packet's course; none when it has none that counts.
async fn next(socket: &AsyncFd<OwnedFd>) -> Option<Course> {
    match socket.async_io(Interest::READABLE, receive).await {
        Ok(course) => course,
        Err(_) => {
            tokio::time::sleep(PAUSE).await;
            None
        }
    }
}

/// Takes a refusal, and finds the packet in it that was refused.
fn receive(socket: &OwnedFd) -> io::Result<Option<Course>> {
    let mut refusal = [0u8; SEEN_BYTES];
    let (received, _) = rustix::net::recv(socket, &mut refusal[..], RecvFlags::DONTWAIT)?;
    Ok(refusal
        .get(..received)
        .and_then(packet::refused)
        .and_then(Course::of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_beyond_the_most_are_counted_as_one() {
        let mut tally = BTreeMap::new();
        let to = |number: u32| Course {
            protocol: 17,
            address: Ipv4Addr::from_bits(0x0a00_0000 + number).into(),
            port: Some(1),
        };
        for number in 0..1000 {
            count(&mut tally, to(number));
            count(&mut tally, to(0));
        }
        assert_eq!(tally.len(), MAX_PLACES + 1);
        assert_eq!(tally[&to(0)], 1001);
        assert_eq!(tally[&OTHERS], 1000 - MAX_PLACES as u64);
    }
}
