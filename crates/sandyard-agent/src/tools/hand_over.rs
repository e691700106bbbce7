//! Handing a connection to the tool server.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;

/// How long the tool server may take to accept a connection.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// Creates a connection, sends one end of it and returns the other. Fails when the tool server does not take it.
pub(super) async fn hand_over(channel: &AsyncFd<OwnedFd>) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (agent_end, server_end) =
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let sent = async {
        loop {
            let mut ready = channel.writable().await?;
            if let Ok(sent) = ready.try_io(|channel| send(channel.get_ref(), server_end.as_fd())) {
                return sent;
            }
        }
    };
    tokio::time::timeout(SEND_TIMEOUT, sent).await??;
    UnixStream::from_std(agent_end.into())
}

fn send(channel: &OwnedFd, descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let descriptor = [descriptor];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&descriptor)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    rustix::net::sendmsg(channel, &[IoSlice::new(b"c")], &mut ancillary, flags)?;
    Ok(())
}
