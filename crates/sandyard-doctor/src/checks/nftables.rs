//! Puts a rule into this network namespace, over netlink.

use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

use crate::attempt::{Attempt, Named, checked};

const SUBSYSTEM: u16 = 10;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const NEW_TABLE: u16 = SUBSYSTEM << 8;
const NEW_CHAIN: u16 = SUBSYSTEM << 8 | 3;
const NEW_RULE: u16 = SUBSYSTEM << 8 | 6;
const ERROR: u16 = 2;

const REQUEST: u16 = 1;
const ACK: u16 = 4;
const CREATE: u16 = 0x400;
const APPEND: u16 = 0x800;
const NESTED: u16 = 0x8000;

/// IPv4 and IPv6 in one table.
const BOTH_FAMILIES: u8 = 1;
const REGISTER: u32 = 1;
const PORT: u16 = 49_981;

/// How many of the messages ask for an answer.
const ANSWERS: usize = 3;

/// A rule that sandboxes have.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule {
    /// Sends what is sent elsewhere to a port of this network.
    Redirect,
    /// Answers what arrives that it is not wanted.
    Refuse,
    /// Keeps no account of a connection.
    Forget,
    /// Holds for what comes more often than allowed.
    Limit,
}

impl Rule {
    /// What to say of it when it fails.
    fn name(self) -> &'static str {
        match self {
            Self::Redirect => "add a redirect",
            Self::Refuse => "add a refusal",
            Self::Forget => "leave connections uncounted",
            Self::Limit => "limit new connections",
        }
    }

    /// Kind of its chain, which packets that sees, and when: as nft(8) names them `output` is 3, `input` 1.
    fn chain(self) -> (&'static str, u32, i32) {
        match self {
            Self::Redirect | Self::Limit => ("nat", 3, -100),
            Self::Refuse => ("filter", 1, 0),
            Self::Forget => ("filter", 3, -300),
        }
    }

    fn expressions(self) -> Vec<u8> {
        let number = |kind: u16, value: u32| attribute(kind, &value.to_be_bytes());
        let tcp = [
            expression("meta", &[number(1, REGISTER), number(2, 16)]),
            expression(
                "cmp",
                &[
                    number(1, REGISTER),
                    number(2, 0),
                    attribute(NESTED | 3, &attribute(1, &[6])),
                ],
            ),
        ];
        let rest = match self {
            Self::Redirect => vec![
                expression(
                    "immediate",
                    &[
                        number(1, REGISTER),
                        attribute(NESTED | 2, &attribute(1, &PORT.to_be_bytes())),
                    ],
                ),
                expression("redir", &[number(1, REGISTER), number(3, 2)]),
            ],
            Self::Refuse => vec![expression("reject", &[number(1, 1)])],
            Self::Forget => vec![expression("notrack", &[])],
            Self::Limit => vec![expression(
                "limit",
                &[
                    attribute(1, &5000_u64.to_be_bytes()),
                    attribute(2, &1_u64.to_be_bytes()),
                    number(3, 10_000),
                    number(4, 0),
                    number(5, 1),
                ],
            )],
        };
        [tcp.concat(), rest.concat()].concat()
    }
}

/// Makes a table, a chain and this rule in it. Call it in a throw-away network namespace.
pub(super) fn add(rule: Rule) -> Attempt {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::NETFILTER),
    )
    .step("open a netfilter socket")?;
    let timeout = libc::timeval {
        tv_sec: 5,
        tv_usec: 0,
    };
    // SAFETY: the value is live and of the size told.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVTIMEO,
            (&raw const timeout).cast(),
            size_of::<libc::timeval>() as u32,
        )
    };
    checked(set.into()).step("set a time-out")?;
    rustix::net::send(&socket, &batch(rule), SendFlags::empty()).step("send nftables rules")?;
    let mut seen = 0;
    while seen < ANSWERS {
        let mut buffer = [0_u8; 8192];
        let (_, count) = rustix::net::recv(socket.as_fd(), &mut buffer, RecvFlags::empty())
            .step("read nftables' answer")?;
        for (sequence, errno) in answers(&buffer[..count]) {
            let name = ["nftables", "add a table", "add a chain", rule.name()];
            let name = name.get(sequence as usize).unwrap_or(&name[0]);
            errno.map_or(Ok(()), |errno| Err(errno).step(name))?;
            seen += 1;
        }
    }
    Ok(())
}

fn batch(rule: Rule) -> Vec<u8> {
    let (kind, packets, priority) = rule.chain();
    let hook = [
        attribute(1, &packets.to_be_bytes()),
        attribute(2, &priority.to_be_bytes()),
    ]
    .concat();
    let add = |kind: u16, flags: u16, sequence: u32, body: &[Vec<u8>]| {
        let flags = REQUEST | CREATE | ACK | flags;
        message(kind, flags, sequence, BOTH_FAMILIES, 0, &body.concat())
    };
    [
        message(BATCH_BEGIN, REQUEST, 0, 0, SUBSYSTEM, &[]),
        add(NEW_TABLE, 0, 1, &[text(1, "t")]),
        add(
            NEW_CHAIN,
            0,
            2,
            &[
                text(1, "t"),
                text(3, "c"),
                attribute(NESTED | 4, &hook),
                text(7, kind),
            ],
        ),
        add(
            NEW_RULE,
            APPEND,
            3,
            &[
                text(1, "t"),
                text(2, "c"),
                attribute(NESTED | 4, &rule.expressions()),
            ],
        ),
        message(BATCH_END, REQUEST, 4, 0, SUBSYSTEM, &[]),
    ]
    .concat()
}

fn text(kind: u16, text: &str) -> Vec<u8> {
    attribute(kind, &[text.as_bytes(), &[0]].concat())
}

fn expression(name: &str, data: &[Vec<u8>]) -> Vec<u8> {
    let data = attribute(NESTED | 2, &data.concat());
    attribute(NESTED | 1, &[text(1, name), data].concat())
}

fn message(
    kind: u16,
    flags: u16,
    sequence: u32,
    family: u8,
    resource: u16,
    body: &[u8],
) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend((20 + body.len() as u32).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend([family, 0]);
    bytes.extend(resource.to_be_bytes());
    bytes.extend(body);
    bytes
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend((4 + value.len() as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Takes the answers apart: for each its sequence number and its error, if it is one.
fn answers(mut bytes: &[u8]) -> Vec<(u32, Option<Errno>)> {
    let number = |bytes: &[u8], at: usize| {
        let bytes = bytes.get(at..at + 4)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    };
    let mut found = Vec::new();
    while let (Some(length), Some(head), Some(sequence), Some(code)) = (
        number(bytes, 0),
        number(bytes, 4),
        number(bytes, 8),
        number(bytes, 16),
    ) {
        if head.to_ne_bytes()[..2] == ERROR.to_ne_bytes() {
            let errno = (code != 0).then(|| Errno::from_raw_os_error((code as i32).wrapping_neg()));
            found.push((sequence, errno));
        }
        let next = (length as usize).next_multiple_of(4).max(16);
        bytes = bytes.get(next..).unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_to_four_bytes() {
        assert_eq!(attribute(1, b"ab").len(), 8);
        assert_eq!(batch(Rule::Redirect).len() % 4, 0);
    }

    #[test]
    fn error_answers_are_read() {
        let bytes = message(ERROR, 0, 7, 0, 0, &[]);
        let mut failed = bytes.clone();
        failed[16..20].copy_from_slice(&(-1_i32).to_ne_bytes());
        let all = [bytes, failed].concat();
        assert_eq!(answers(&all), [(7, None), (7, Some(Errno::PERM))]);
        assert!(answers(&all[..10]).is_empty());
    }
}
