//! Egress: passes the agent's messages and connections to the gateway at the other end of the link.

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
use crate::{EGRESS_READY, LinkStream, Mux, StreamKind};

/// Maximum bytes per read.
const PIECE: usize = 16 * 1024;

/// Serves one channel to its end.
pub(super) async fn serve(mux: &Mux, agent: Endpoint, mut stream: LinkStream) -> io::Result<()> {
    let number = stream.read_u32().await?;
    // One closing thread suffices: this process serves one sandbox only.
    let mut channel = agent.open_egress(&Arc::new(Closer::new(1))).await?;
    stream.write_u8(EGRESS_READY).await?;
    stream.flush().await?;
    let (mut from_gateway, to_gateway) = tokio::io::split(stream);
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
                        // After a failure the program's connection is reset, so it knows.
                        let _ = hand_over(&mux, number, &frame, connection).await;
                    });
                }
                _ => to_gateway.write_all(&frame).await?,
            }
        }
        to_gateway.flush().await?;
    }
}

/// Sends a program's connection to the gateway. When too many are open, or the link has ended, it is reset.
async fn hand_over(mux: &Mux, number: u32, frame: &[u8], connection: OwnedFd) -> io::Result<()> {
    splice::reset(&connection);
    let socket = std::net::TcpStream::from(connection);
    socket.set_nonblocking(true)?;
    let socket = TcpStream::from_std(socket)?;
    let mut head = vec![StreamKind::Outgoing.byte()];
    head.extend_from_slice(&number.to_be_bytes());
    head.extend_from_slice(frame);
    let stream = mux.try_open(&head).await?;
    splice::tcp(socket, stream).await
}

/// Bytes and descriptors from the agent that are not used yet.
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
        let mut buffers = [IoSliceMut::new(&mut piece)];
        let count = rustix::net::recvmsg(agent, &mut buffers, &mut control, flags)?.bytes;
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
