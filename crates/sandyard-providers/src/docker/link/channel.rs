//! A gateway's channel from the agent's side.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::Mutex;

/// Pause while this user has too many descriptors in flight: the kernel counts those not yet received.
const TOO_MANY_PAUSE: Duration = Duration::from_millis(10);

/// This side of a channel.
#[derive(Debug)]
pub(super) struct Channel {
    writer: Mutex<Writer>,
}

#[derive(Debug)]
struct Writer {
    socket: OwnedWriteHalf,
    /// A frame was only sent in part: nothing can follow.
    is_incomplete: bool,
}

impl Channel {
    pub(super) fn new(socket: OwnedWriteHalf) -> Self {
        Self {
            writer: Mutex::new(Writer {
                socket,
                is_incomplete: false,
            }),
        }
    }

    /// Sends a frame, with the descriptor attached to its first byte.
    pub(super) async fn send_frame(
        &self,
        frame: &[u8],
        mut descriptor: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let mut writer = self.writer.lock().await;
        if std::mem::replace(&mut writer.is_incomplete, true) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let socket: &UnixStream = writer.socket.as_ref();
        let mut rest = frame;
        while !rest.is_empty() {
            let sent = socket.async_io(Interest::WRITABLE, || send(socket, rest, descriptor));
            match sent.await {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    descriptor = None;
                    rest = rest.get(count..).unwrap_or_default();
                }
                Err(error) if is_out_of_resources(&error) => {
                    tokio::time::sleep(TOO_MANY_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
        writer.is_incomplete = false;
        Ok(())
    }
}

fn send(
    socket: &UnixStream,
    bytes: &[u8],
    descriptor: Option<BorrowedFd<'_>>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if descriptor.is_some() && !control.push(SendAncillaryMessage::ScmRights(descriptor.as_slice()))
    {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let parts = [IoSlice::new(bytes)];
    Ok(rustix::net::sendmsg(socket, &parts, &mut control, flags)?)
}

fn is_out_of_resources(error: &io::Error) -> bool {
    let errors = [Errno::TOOMANYREFS, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|errno| errors.contains(&errno))
}
