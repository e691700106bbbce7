//! Tables, chains and rules of nftables, added in one transaction: all of them or none.

use std::io;

use crate::exchange::{NETFILTER, exchange};
use crate::message::{APPEND, Attributes, CREATE, Messages, REQUEST};

const SUBSYSTEM: u16 = 10;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const NEW_TABLE: u16 = SUBSYSTEM << 8;
const NEW_CHAIN: u16 = SUBSYSTEM << 8 | 3;
const NEW_RULE: u16 = SUBSYSTEM << 8 | 6;
/// IPv4 and IPv6 in one table: `NFPROTO_INET`.
const INET: u8 = 1;

/// The register that verdicts go to, and the one we load into.
const VERDICT: u32 = 0;
const REGISTER: u32 = 1;

/// When a chain sees a packet.
#[derive(Clone, Copy, Debug)]
pub enum Hook {
    /// On its way to this network's own programs.
    Input = 1,
    /// Sent by one of them.
    Output = 3,
}

/// A step of a rule: the rule ends at the first that does not hold.
#[derive(Clone, Copy, Debug)]
pub enum Expression<'a> {
    /// The packet is IPv4 (2) or IPv6 (10).
    Family(u8),
    /// What it carries: 6 is TCP, 17 is UDP.
    Carries(u8),
    /// These bytes are in IP's header, from there on.
    Network(u32, &'a [u8]),
    /// These bytes are in the header of what it carries, from there on.
    Transport(u32, &'a [u8]),
    /// The rate of packets is above this limit.
    MoreThan {
        /// Packets per second.
        per_second: u64,
        /// Packets that may arrive at once.
        burst: u32,
    },
    /// Leave the chain with the packet.
    Accept,
    /// Leave it without.
    Drop,
    /// Do not remember its connection.
    Forget,
    /// Answer as a closed TCP port does.
    Reset,
    /// Answer that nothing is there.
    Unreachable,
    /// Have it go to this port of this network instead.
    Redirect(u16),
}

/// A table that is being put together.
#[derive(Debug)]
pub struct NewTable {
    name: &'static str,
    messages: Messages,
}

/// What the kernel did not take.
#[derive(Debug)]
pub struct Refused {
    /// Number of the chain or rule, if it is one.
    pub number: Option<u32>,
    /// The kernel's error.
    pub error: io::Error,
}

impl NewTable {
    /// Starts with no chains.
    pub fn new(name: &'static str) -> Self {
        let mut messages = Messages::default();
        messages.add(BATCH_BEGIN, REQUEST, &fixed(0, SUBSYSTEM), |_| {});
        messages.add(NEW_TABLE, REQUEST | CREATE, &fixed(INET, 0), |table| {
            table.text(1, name);
        });
        Self { name, messages }
    }

    /// Adds a chain of a kind (`filter`, `nat`). Chains with a lower priority come first. Returns its number.
    pub fn chain(&mut self, name: &str, kind: &str, hook: Hook, priority: i32) -> u32 {
        self.messages
            .add(NEW_CHAIN, REQUEST | CREATE, &fixed(INET, 0), |chain| {
                chain.text(1, self.name);
                chain.text(3, name);
                chain.nest(4, |place| {
                    place.number(1, hook as u32);
                    place.number(2, priority.cast_unsigned());
                });
                chain.text(7, kind);
            })
    }

    /// Adds a rule at the end of a chain. Returns its number.
    pub fn rule(&mut self, chain: &str, expressions: &[Expression<'_>]) -> u32 {
        let flags = REQUEST | CREATE | APPEND;
        self.messages.add(NEW_RULE, flags, &fixed(INET, 0), |rule| {
            rule.text(1, self.name);
            rule.text(2, chain);
            rule.nest(4, |list| {
                expressions.iter().for_each(|each| write(list, each))
            });
        })
    }

    /// Makes the table effective.
    pub fn commit(mut self) -> Result<(), Refused> {
        // The kernel reports every failure; the answer to this message means that the table is effective.
        let last = self.messages.ask_for_last();
        self.messages
            .add(BATCH_END, REQUEST, &fixed(0, SUBSYSTEM), |_| {});
        let refused = |number, error| Refused { number, error };
        let answers = exchange(NETFILTER, &self.messages).map_err(|error| refused(None, error))?;
        if let Some((number, errno)) = answers.first_failure() {
            return Err(refused(Some(number), errno.into()));
        }
        answers.of(last).map_err(|error| refused(None, error))
    }
}

/// `nfgenmsg`: family, version, resource.
fn fixed(family: u8, resource: u16) -> [u8; 4] {
    let [high, low] = resource.to_be_bytes();
    [family, 0, high, low]
}

fn write(list: &mut Attributes<'_>, expression: &Expression<'_>) {
    const META_FAMILY: u32 = 15;
    const META_CARRIES: u32 = 16;
    const NETWORK_HEADER: u32 = 1;
    const TRANSPORT_HEADER: u32 = 2;
    match *expression {
        Expression::Family(family) => {
            load_meta(list, META_FAMILY);
            equal(list, &[family]);
        }
        Expression::Carries(protocol) => {
            load_meta(list, META_CARRIES);
            equal(list, &[protocol]);
        }
        Expression::Network(offset, bytes) => {
            load_payload(list, NETWORK_HEADER, offset, bytes.len());
            equal(list, bytes);
        }
        Expression::Transport(offset, bytes) => {
            load_payload(list, TRANSPORT_HEADER, offset, bytes.len());
            equal(list, bytes);
        }
        Expression::MoreThan { per_second, burst } => element(list, "limit", |limit| {
            limit.add(1, &per_second.to_be_bytes());
            limit.add(2, &1_u64.to_be_bytes());
            limit.number(3, burst);
            limit.number(4, 0); // packets, not bytes
            limit.number(5, 1); // over, not under
        }),
        Expression::Accept => verdict(list, 1),
        Expression::Drop => verdict(list, 0),
        Expression::Forget => element(list, "notrack", |_| {}),
        Expression::Reset => element(list, "reject", |reject| reject.number(1, 1)),
        Expression::Unreachable => element(list, "reject", |reject| {
            // The same for both families: no such port.
            reject.number(1, 2);
            reject.add(2, &[1]);
        }),
        Expression::Redirect(port) => {
            element(list, "immediate", |immediate| {
                immediate.number(1, REGISTER);
                immediate.nest(2, |data| data.add(1, &port.to_be_bytes()));
            });
            element(list, "redir", |redirect| {
                redirect.number(1, REGISTER);
                redirect.number(3, 2); // a port is given
            });
        }
    }
}

fn element(list: &mut Attributes<'_>, name: &str, data: impl FnOnce(&mut Attributes<'_>)) {
    list.nest(1, |element| {
        element.text(1, name);
        element.nest(2, data);
    });
}

fn load_meta(list: &mut Attributes<'_>, key: u32) {
    element(list, "meta", |meta| {
        meta.number(1, REGISTER);
        meta.number(2, key);
    });
}

fn load_payload(list: &mut Attributes<'_>, header: u32, offset: u32, length: usize) {
    element(list, "payload", |payload| {
        payload.number(1, REGISTER);
        payload.number(2, header);
        payload.number(3, offset);
        payload.number(4, length as u32);
    });
}

fn equal(list: &mut Attributes<'_>, bytes: &[u8]) {
    element(list, "cmp", |compare| {
        compare.number(1, REGISTER);
        compare.number(2, 0);
        compare.nest(3, |data| data.add(1, bytes));
    });
}

fn verdict(list: &mut Attributes<'_>, code: u32) {
    element(list, "immediate", |immediate| {
        immediate.number(1, VERDICT);
        immediate.nest(2, |data| data.nest(2, |verdict| verdict.number(1, code)));
    });
}
