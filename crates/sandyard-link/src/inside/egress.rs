//! The way out: what the agent hands to a gateway goes to the one at the other end of the link.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use sandyard_agent_client::{Closer, Endpoint};
use sandyard_wire::egress::{self, FromAgent};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, Interest};
use tokio::net::{TcpStream, UnixStream};

use crate::splice;
use crate::{Carried, EGRESS_READY, Kind, Mux};

/// Bytes read in one go.
const PIECE: usize = 16 * 1024;

/// Serves one channel to its end.
pub(super) async fn serve(mux: &Mux, agent: Endpoint, mut carried: Carried) -> io::Result<()> {
    let number = carried.read_u32().await?;
    // This process is the sandbox's own: nobody else waits when it does.
    let mut channel = agent.open_egress(&Arc::new(Closer::new(1))).await?;
    carried.write_u8(EGRESS_READY).await?;
    carried.flush().await?;
    let (mut from_gateway, to_gateway) = tokio::io::split(carried);
    let (reader, mut writer) = channel.split();
    tokio::select! {
        ended = tokio::io::copy(&mut from_gateway, &mut writer) => ended.map(drop),
        ended = outwards(mux, number, reader.as_ref(), to_gateway) => ended,
    }
}

async fn outwards(
    mux: &Mux,
    number: u32,
    agent: &UnixStream,
    mut to_gateway: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut received = Received::default();
    loop {
        received.fill(agent).await?;
        while let Some(message) = received.next()? {
            let frame = egress::encode(&message).map_err(io::Error::other)?;
            match message {
                FromAgent::Open { .. } => {
                    let connection = received.descriptors.pop_front();
                    let connection = connection.ok_or(io::ErrorKind::InvalidData)?;
                    let mux = mux.clone();
                    tokio::task::spawn_local(async move {
                        // The program has been told by then.
                        let _ = hand_over(&mux, number, &frame, connection).await;
                    });
                }
                _ => to_gateway.write_all(&frame).await?,
            }
        }
        to_gateway.flush().await?;
    }
}

/// Sends a program's connection out. Where there is no room for it, or no link any more, it is reset.
async fn hand_over(mux: &Mux, number: u32, frame: &[u8], connection: OwnedFd) -> io::Result<()> {
    splice::reset(&connection);
    let socket = std::net::TcpStream::from(connection);
    socket.set_nonblocking(true)?;
    let socket = TcpStream::from_std(socket)?;
    let mut head = vec![Kind::Taken.byte()];
    head.extend_from_slice(&number.to_be_bytes());
    head.extend_from_slice(frame);
    let carried = mux.open_if_room(&head).await?;
    splice::tcp(socket, carried).await
}

/// What came from the agent and is not used yet.
#[derive(Debug, Default)]
struct Received {
    bytes: Vec<u8>,
    descriptors: VecDeque<OwnedFd>,
}

impl Received {
    async fn fill(&mut self, agent: &UnixStream) -> io::Result<()> {
        let count = agent
            .async_io(Interest::READABLE, || self.receive(agent))
            .await?;
        match count {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    fn receive(&mut self, agent: &UnixStream) -> io::Result<usize> {
        let mut piece = [0; PIECE];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let mut room = [IoSliceMut::new(&mut piece)];
        let count = rustix::net::recvmsg(agent, &mut room, &mut control, flags)?.bytes;
        for part in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = part {
                self.descriptors.extend(descriptors);
            }
        }
        self.bytes.extend_from_slice(&piece[..count]);
        Ok(count)
    }

    fn next(&mut self) -> io::Result<Option<FromAgent>> {
        egress::decode(&mut self.bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}
