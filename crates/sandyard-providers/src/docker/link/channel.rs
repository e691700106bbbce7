//! The gateway's channel, as an agent would speak on it.

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

/// A pause while too many descriptors of this user are on their way: the kernel counts those not yet received.
const TOO_MANY_PAUSE: Duration = Duration::from_millis(10);

/// Our end of a channel.
#[derive(Debug)]
pub(super) struct Channel {
    writer: Mutex<Writer>,
}

#[derive(Debug)]
struct Writer {
    socket: OwnedWriteHalf,
    /// A frame was begun and not ended: nothing can follow.
    is_torn: bool,
}

impl Channel {
    pub(super) fn new(socket: OwnedWriteHalf) -> Self {
        Self {
            writer: Mutex::new(Writer {
                socket,
                is_torn: false,
            }),
        }
    }

    /// Says a whole frame, the descriptor with its first byte.
    pub(super) async fn say(
        &self,
        frame: &[u8],
        mut carried: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let mut writer = self.writer.lock().await;
        if std::mem::replace(&mut writer.is_torn, true) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let socket: &UnixStream = writer.socket.as_ref();
        let mut rest = frame;
        while !rest.is_empty() {
            let sent = socket.async_io(Interest::WRITABLE, || send(socket, rest, carried));
            match sent.await {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    carried = None;
                    rest = rest.get(count..).unwrap_or_default();
                }
                Err(error) if is_for_want_of_room(&error) => {
                    tokio::time::sleep(TOO_MANY_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
        writer.is_torn = false;
        Ok(())
    }
}

fn send(socket: &UnixStream, bytes: &[u8], carried: Option<BorrowedFd<'_>>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if carried.is_some() && !control.push(SendAncillaryMessage::ScmRights(carried.as_slice())) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let parts = [IoSlice::new(bytes)];
    Ok(rustix::net::sendmsg(socket, &parts, &mut control, flags)?)
}

fn is_for_want_of_room(error: &io::Error) -> bool {
    let wants = [Errno::TOOMANYREFS, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|errno| wants.contains(&errno))
}
