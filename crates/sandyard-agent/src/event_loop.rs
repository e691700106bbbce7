//! The event loop, and how a fork of the agent gets its own.
//!
//! Tokio creates one socket pair per process, with which signal handlers wake its event loops, and never another one.
//! A fork inherits the pair: reading from it would take wake-ups from the agent, and without it tokio cannot create an
//! event loop. So the agent finds the pair's descriptor numbers when it creates its own loop, and a fork puts a new pair
//! at these numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use tokio::runtime::Runtime;

/// How many numbers above the lowest free one are scanned; an event loop takes about six.
const SCANNED_FDS: RawFd = 64;

/// Descriptor numbers of the agent's loop that tokio's memory still holds in a fork.
#[derive(Debug, Clone)]
pub(crate) struct WakePair {
    /// The numbers of each of the pair's two ends.
    ends: [Vec<RawFd>; 2],
    /// The numbers of the loop itself. In the fork a signal also wakes the agent's tasks in the copied memory, which writes
    /// to one of them. The number must not belong to anything else then.
    itself: Vec<RawFd>,
}

/// Creates the agent's event loop, the first of this process. The pair is `None` when it was not found.
pub(crate) fn build() -> io::Result<(Runtime, Option<WakePair>)> {
    let from = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3).map(|fd| fd.as_raw_fd());
    let scan = || {
        from.as_ref()
            .map(|&from| open_descriptors(from))
            .unwrap_or_default()
    };
    let before: BTreeSet<RawFd> = scan().into_keys().collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let created = scan().into_iter().filter(|(fd, _)| !before.contains(fd));
    Ok((runtime, WakePair::from_descriptors(created)))
}

impl WakePair {
    /// Groups descriptors of the same socket; there must be two sockets.
    fn from_descriptors(created: impl Iterator<Item = (RawFd, Option<u64>)>) -> Option<Self> {
        let mut ends: BTreeMap<u64, Vec<RawFd>> = BTreeMap::new();
        let mut itself = Vec::new();
        for (fd, socket) in created {
            match socket {
                Some(inode) => ends.entry(inode).or_default().push(fd),
                None => itself.push(fd),
            }
        }
        let ends: Vec<_> = ends.into_values().collect();
        let ends = ends.try_into().ok()?;
        Some(Self { ends, itself })
    }

    /// Puts a new pair at the numbers of the old one, and an eventfd that discards wake-ups at the numbers of the loop.
    /// Called in a fork that has closed those descriptors.
    pub(crate) fn renew(&self) -> io::Result<()> {
        let all = self.ends.iter().flatten().chain(&self.itself);
        let above = 1 + all.max().copied().unwrap_or(2);
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (one, other) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let discard = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // Moved above: they may have got the very numbers that are to be filled.
        let away = |fd: OwnedFd| rustix::io::fcntl_dupfd_cloexec(&fd, above);
        let moved = [away(one)?, away(other)?, away(discard)?];
        let [one, other] = &self.ends;
        for (source, numbers) in moved.iter().zip([one, other, &self.itself]) {
            for &number in numbers {
                // SAFETY: only tokio uses the number in this process, and for this purpose.
                if unsafe { libc::dup3(source.as_raw_fd(), number, libc::O_CLOEXEC) } < 0 {
                    return Err(io::Error::last_os_error());
                }
            }
        }
        Ok(())
    }
}

/// The open descriptors from a number on; sockets with their inode.
fn open_descriptors(from: RawFd) -> BTreeMap<RawFd, Option<u64>> {
    let scan = |fd| {
        // SAFETY: all bytes zero are a valid `stat`, which the call fills.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: `stat` is valid for the call; a number that is not open is refused.
        let is_open = unsafe { libc::fstat(fd, &mut stat) } == 0;
        let is_socket = stat.st_mode & libc::S_IFMT == libc::S_IFSOCK;
        is_open.then_some((fd, is_socket.then_some(stat.st_ino)))
    };
    (from..from.saturating_add(SCANNED_FDS))
        .filter_map(scan)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_two_sockets_however_many_numbers_they_have() {
        let some =
            |created: &[(RawFd, Option<u64>)]| WakePair::from_descriptors(created.iter().copied());
        let pair = some(&[(4, None), (5, Some(70)), (6, Some(71)), (9, Some(70))]);
        let pair = pair.expect("a pair");
        assert_eq!(pair.ends, [vec![5, 9], vec![6]]);
        assert_eq!(pair.itself, [4]);
        assert!(some(&[(5, Some(70))]).is_none());
        assert!(some(&[(5, Some(70)), (6, Some(71)), (7, Some(72))]).is_none());
    }
}
