//! The event loop, and what a fork of the agent that runs one of its own has to know of it.
//!
//! Tokio makes one pair of sockets for the whole process, by which signal handlers wake its event loops, and never another.
//! A fork inherits the pair: reading from it there would swallow what is meant for the agent, and without it no event loop
//! can be made at all. So the places of the pair are found when the agent's own loop is made, and a fork puts a pair of
//! its own there.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use tokio::runtime::Runtime;

/// How many numbers above the lowest free one are looked at; making a loop takes half a dozen.
const LOOKED_AT: RawFd = 64;

/// Descriptors of the agent's loop that tokio's memory goes on to name in a fork.
#[derive(Debug, Clone)]
pub(crate) struct WakePair {
    /// The numbers of each of the pair's two ends.
    ends: [Vec<RawFd>; 2],
    /// The numbers of the loop itself. A signal wakes the agent's tasks in the fork's memory too, and so writes to one of
    /// them; what is done to anything else by that number would be a mess.
    itself: Vec<RawFd>,
}

/// Makes the event loop of the agent, the first of this process. The pair is none when it was not found.
pub(crate) fn build() -> io::Result<(Runtime, Option<WakePair>)> {
    let from = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).map(|fd| fd.as_raw_fd());
    let look = || from.as_ref().map(|&from| open(from)).unwrap_or_default();
    let before: BTreeSet<RawFd> = look().into_keys().collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let made = look().into_iter().filter(|(fd, _)| !before.contains(fd));
    Ok((runtime, WakePair::among(made)))
}

impl WakePair {
    /// Puts the sockets together that are the same one; there have to be two.
    fn among(made: impl Iterator<Item = (RawFd, Option<u64>)>) -> Option<Self> {
        let mut ends: BTreeMap<u64, Vec<RawFd>> = BTreeMap::new();
        let mut itself = Vec::new();
        for (fd, socket) in made {
            match socket {
                Some(inode) => ends.entry(inode).or_default().push(fd),
                None => itself.push(fd),
            }
        }
        let ends: Vec<_> = ends.into_values().collect();
        let ends = ends.try_into().ok()?;
        Some(Self { ends, itself })
    }

    /// Puts a new pair in the places of the old one, and something in the places of the loop that takes any wake-up and tells
    /// nobody. Called in a fork that has closed what was there.
    pub(crate) fn renew(&self) -> io::Result<()> {
        let all = self.ends.iter().flatten().chain(&self.itself);
        let above = 1 + all.max().copied().unwrap_or(2);
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (one, other) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let nobody = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // Out of the way: they may have got the very numbers that are to be filled.
        let away = |fd: OwnedFd| rustix::io::fcntl_dupfd_cloexec(&fd, above);
        let moved = [away(one)?, away(other)?, away(nobody)?];
        let [one, other] = &self.ends;
        for (source, places) in moved.iter().zip([one, other, &self.itself]) {
            for &place in places {
                // SAFETY: nobody in this process has the number but tokio, which means just this by it.
                if unsafe { libc::dup3(source.as_raw_fd(), place, libc::O_CLOEXEC) } < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
        }
        Ok(())
    }
}

/// What is open from a number on; of sockets, with what tells one from another.
fn open(from: RawFd) -> BTreeMap<RawFd, Option<u64>> {
    let look = |fd| {
        // SAFETY: all bytes zero are a valid `stat`, which the call fills.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: `stat` is valid for the call; a number that is not open is refused.
        let is_open = unsafe { libc::fstat(fd, &mut stat) } == 0;
        let is_socket = stat.st_mode & libc::S_IFMT == libc::S_IFSOCK;
        is_open.then_some((fd, is_socket.then_some(stat.st_ino)))
    };
    (from..from.saturating_add(LOOKED_AT))
        .filter_map(look)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_two_sockets_however_many_numbers_they_have() {
        let some = |made: &[(RawFd, Option<u64>)]| WakePair::among(made.iter().copied());
        let pair = some(&[(4, None), (5, Some(70)), (6, Some(71)), (9, Some(70))]);
        let pair = pair.expect("a pair");
        assert_eq!(pair.ends, [vec![5, 9], vec![6]]);
        assert_eq!(pair.itself, [4]);
        assert!(some(&[(5, Some(70))]).is_none());
        assert!(some(&[(5, Some(70)), (6, Some(71)), (7, Some(72))]).is_none());
    }
}
