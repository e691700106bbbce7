//! The loopback link, its addresses and what is routed to it; see rtnetlink(7).

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use crate::exchange::{ROUTE, exchange};
use crate::message::{ASKING, CREATE, Messages};

const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;
const NEW_ROUTE: u16 = 24;

/// The loopback link is the first of every network namespace.
const LOOPBACK: u32 = 1;
const UP: u32 = 1;

const INET: u8 = 2;
const INET6: u8 = 10;
/// Where the kernel looks up what is its own; see ip-rule(8).
const LOCAL_TABLE: u8 = 255;
const LOCAL: u8 = 2;
const BY_ADMINISTRATOR: u8 = 4;
const THIS_HOST: u8 = 254;

/// What is to be changed, sent all at once.
#[derive(Debug, Default)]
pub struct Changes {
    messages: Messages,
    /// Numbers of those that may fail.
    optional: Vec<u32>,
}

impl Changes {
    /// Brings the loopback link up, and with it 127.0.0.1 and ::1.
    pub fn raise_loopback(&mut self) {
        // `ifinfomsg`: family, pad, type, index, flags, which of them to change.
        let mut fixed = vec![0; 4];
        fixed.extend(LOOPBACK.to_ne_bytes());
        fixed.extend(UP.to_ne_bytes());
        fixed.extend(UP.to_ne_bytes());
        self.messages.add(NEW_LINK, ASKING, &fixed, |_| {});
    }

    /// Gives the loopback link another address of 127.0.0.0/8.
    pub fn add_loopback_address(&mut self, address: Ipv4Addr) {
        // `ifaddrmsg`: family, length of the prefix, flags, scope, index.
        let mut fixed = vec![INET, 8, 0, THIS_HOST];
        fixed.extend(LOOPBACK.to_ne_bytes());
        self.messages
            .add(NEW_ADDRESS, ASKING | CREATE, &fixed, |attributes| {
                attributes.add(1, &address.octets());
                attributes.add(2, &address.octets());
            });
    }

    /// Makes every address there is one of this network's own, reached from `source`. IPv6 may be missing.
    pub fn keep_everything_here(&mut self, source: IpAddr) {
        let (family, octets) = match source {
            IpAddr::V4(source) => (INET, source.octets().to_vec()),
            IpAddr::V6(source) => (INET6, source.octets().to_vec()),
        };
        // `rtmsg`: family, lengths of both prefixes, type of service, table, origin, scope, type, flags.
        let scope = if family == INET { THIS_HOST } else { 0 };
        let fixed = [
            family,
            0,
            0,
            0,
            LOCAL_TABLE,
            BY_ADMINISTRATOR,
            scope,
            LOCAL,
            0,
            0,
            0,
            0,
        ];
        let number = self
            .messages
            .add(NEW_ROUTE, ASKING | CREATE, &fixed, |attributes| {
                attributes.add(4, &LOOPBACK.to_ne_bytes());
                attributes.add(7, &octets);
            });
        if source.is_ipv6() {
            self.optional.push(number);
        }
    }

    /// Has the kernel make them.
    pub fn make(&self) -> io::Result<()> {
        let answers = exchange(ROUTE, &self.messages)?.without(&self.optional);
        match answers.first_failure() {
            Some((_, errno)) => Err(errno.into()),
            None => Ok(()),
        }
    }
}
