//! Sends messages and reads what each came to.

use std::io;

use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::message::Messages;

/// The kernel's parts we speak to.
pub(crate) const ROUTE: Option<Protocol> = None; // its number is 0
/// See [`ROUTE`].
pub(crate) const NETFILTER: Option<Protocol> = Some(netlink::NETFILTER);

/// Kind of a message that answers another: `NLMSG_ERROR`. Its error is 0 when all went well.
const ANSWER: u16 = 2;
/// Room for an answer with the message it is about.
const BUFFER_BYTES: usize = 16 * 1024;

/// What messages came to, by number.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Answers(Vec<(u32, Option<Errno>)>);

impl Answers {
    /// The first that failed: its number, and how.
    pub(crate) fn first_failure(&self) -> Option<(u32, Errno)> {
        let mut answers = self.0.iter();
        answers.find_map(|(number, errno)| Some((*number, (*errno)?)))
    }

    /// Forgets what messages of these numbers came to.
    pub(crate) fn without(mut self, numbers: &[u32]) -> Self {
        self.0.retain(|(number, _)| !numbers.contains(number));
        self
    }

    /// What the message of that number came to.
    pub(crate) fn of(&self, number: u32) -> io::Result<()> {
        match self.0.iter().find(|(answered, _)| *answered == number) {
            Some((_, None)) => Ok(()),
            Some((_, Some(errno))) => Err((*errno).into()),
            None => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the kernel did not answer",
            )),
        }
    }
}

/// Sends to the kernel's part named `protocol`, and reads all answers: they are there when sending returns.
pub(crate) fn exchange(protocol: Option<Protocol>, messages: &Messages) -> io::Result<Answers> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        protocol,
    )?;
    let kernel = SocketAddrNetlink::new(0, 0);
    rustix::net::sendto(&socket, messages.bytes(), SendFlags::empty(), &kernel)?;
    let mut answers = Answers::default();
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match rustix::net::recv(&socket, &mut buffer[..], RecvFlags::DONTWAIT) {
            Ok((_, count)) => read(&buffer[..count.min(BUFFER_BYTES)], &mut answers),
            Err(Errno::WOULDBLOCK) => return Ok(answers),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn read(mut bytes: &[u8], answers: &mut Answers) {
    let number = |bytes: &[u8], at: usize| {
        let four = bytes.get(at..at + 4)?;
        Some(u32::from_ne_bytes(four.try_into().ok()?))
    };
    while let (Some(length), Some(kind), Some(sequence), Some(error)) = (
        number(bytes, 0),
        number(bytes, 4),
        number(bytes, 8),
        number(bytes, 16),
    ) {
        if kind.to_ne_bytes()[..2] == ANSWER.to_ne_bytes() {
            let errno = (error as i32).wrapping_neg();
            let failed = (errno != 0).then(|| Errno::from_raw_os_error(errno));
            answers.0.push((sequence, failed));
        }
        let next = (length as usize).next_multiple_of(4).max(16);
        bytes = bytes.get(next..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(number: u32, errno: i32) -> Vec<u8> {
        let mut messages = Messages::default();
        messages.add(ANSWER, 0, &(-errno).to_ne_bytes(), |_| {});
        let mut bytes = messages.bytes().to_vec();
        bytes[8..12].copy_from_slice(&number.to_ne_bytes());
        bytes
    }

    #[test]
    fn answers_are_matched_by_number() {
        let mut answers = Answers::default();
        read(&[answer(1, 0), answer(2, 1)].concat(), &mut answers);
        assert!(answers.of(1).is_ok());
        assert_eq!(answers.of(2).expect_err("refused").raw_os_error(), Some(1));
        assert!(answers.of(3).is_err());
        assert_eq!(answers.first_failure(), Some((2, Errno::PERM)));
    }

    #[test]
    fn what_is_cut_off_is_no_answer() {
        let mut answers = Answers::default();
        read(&answer(1, 0)[..10], &mut answers);
        assert_eq!(answers, Answers::default());
    }
}
