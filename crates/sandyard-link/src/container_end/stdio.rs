//! Standard input and output as one stream: pipes or sockets, whatever the container engine makes them.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use tokio::io::Join;
use tokio::net::unix::pipe::{Receiver, Sender};

/// Takes both descriptors and puts `/dev/null` in their place, so that nothing else can write to the link.
pub(super) fn take() -> io::Result<(OwnedFd, OwnedFd)> {
    let input = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok((input, output))
}

/// Registers both with the event loop.
pub(super) fn register((input, output): (OwnedFd, OwnedFd)) -> io::Result<Join<Receiver, Sender>> {
    rustix::io::ioctl_fionbio(&input, true)?;
    rustix::io::ioctl_fionbio(&output, true)?;
    // Unchecked, because they may be sockets: they are read and written like any descriptor.
    let input = Receiver::from_owned_fd_unchecked(input)?;
    let output = Sender::from_owned_fd_unchecked(output)?;
    Ok(tokio::io::join(input, output))
}
