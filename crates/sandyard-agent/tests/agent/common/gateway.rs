//! A gateway that does only what a test tells it to.

use std::collections::VecDeque;
use std::io::{IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use bytes::Bytes;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use sandyard_wire::egress::{FromAgent, ToAgent, Via, decode, encode};

use super::{Agent, TIMEOUT};

/// A gateway attached to an agent.
pub(crate) struct Gateway {
    pub(crate) socket: UnixStream,
    received: Vec<u8>,
    descriptors: VecDeque<OwnedFd>,
}

impl Drop for Gateway {
    /// A program that another test is about to start has its descriptors, too, for a moment: closing them is not enough.
    fn drop(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }
}

/// A connection that the gateway was given.
#[derive(Debug)]
pub(crate) struct OpenedConnection {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) via: Via,
    pub(crate) early: Bytes,
    pub(crate) connection: TcpStream,
}

/// A look-up that the gateway was given.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) id: u32,
    pub(crate) address: Option<Ipv4Addr>,
    pub(crate) packet: Bytes,
}

impl Gateway {
    /// Attaches to an agent.
    pub(crate) fn attach(agent: &Agent) -> Self {
        Self::attach_with(agent, b"")
    }

    /// Attaches, with some bytes right after the request.
    pub(crate) fn attach_with(agent: &Agent, after: &[u8]) -> Self {
        let mut socket = UnixStream::connect(agent.path("agent.sock")).unwrap();
        socket.set_read_timeout(Some(TIMEOUT)).unwrap();
        let head = "GET /egress HTTP/1.1\r\nhost: agent\r\nconnection: Upgrade\r\nupgrade: sandyard-egress\r\n\r\n";
        socket
            .write_all(&[head.as_bytes(), after].concat())
            .unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            socket.read_exact(&mut byte).unwrap();
            answer.extend(byte);
        }
        let answer = String::from_utf8(answer).unwrap().to_ascii_lowercase();
        assert!(answer.starts_with("http/1.1 101 "), "{answer}");
        assert!(
            answer.contains("\r\nupgrade: sandyard-egress\r\n"),
            "{answer}"
        );
        Self {
            socket,
            received: Vec::new(),
            descriptors: VecDeque::new(),
        }
    }

    /// Sends a frame.
    pub(crate) fn say(&mut self, message: &ToAgent) {
        self.socket.write_all(&encode(message).unwrap()).unwrap();
    }

    /// Answers a look-up.
    pub(crate) fn answer(&mut self, query: &Query, packet: impl Into<Bytes>) {
        let packet = packet.into();
        self.say(&ToAgent::Answer {
            id: query.id,
            packet,
        });
    }

    /// The next frame; none when the agent has closed.
    pub(crate) fn try_next(&mut self) -> Option<FromAgent> {
        loop {
            if let Some(message) = decode(&mut self.received).unwrap() {
                return Some(message);
            }
            let mut buffer = [0; 16 * 1024];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let received = rustix::net::recvmsg(
                &self.socket,
                &mut [IoSliceMut::new(&mut buffer)],
                &mut ancillary,
                RecvFlags::CMSG_CLOEXEC,
            )
            .unwrap();
            for message in ancillary.drain() {
                if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                    self.descriptors.extend(descriptors);
                }
            }
            if received.bytes == 0 {
                return None;
            }
            self.received.extend_from_slice(&buffer[..received.bytes]);
        }
    }

    /// The next frame.
    pub(crate) fn next(&mut self) -> FromAgent {
        self.try_next().expect("the agent closed the channel")
    }

    /// The next frame, which has to be a connection.
    pub(crate) fn next_connection(&mut self) -> OpenedConnection {
        match self.next() {
            FromAgent::Open {
                host,
                port,
                via,
                early,
            } => {
                let descriptor = self.descriptors.pop_front();
                let connection = TcpStream::from(descriptor.expect("a descriptor"));
                connection.set_nonblocking(false).unwrap();
                connection.set_read_timeout(Some(TIMEOUT)).unwrap();
                OpenedConnection {
                    host,
                    port,
                    via,
                    early,
                    connection,
                }
            }
            other => panic!("expected a connection: {other:?}"),
        }
    }

    /// The next frame, which has to be a look-up.
    pub(crate) fn query(&mut self) -> Query {
        match self.next() {
            FromAgent::Query {
                id,
                address,
                packet,
            } => Query {
                id,
                address,
                packet,
            },
            other => panic!("expected a look-up: {other:?}"),
        }
    }

    /// Whether descriptors came that no frame was for.
    pub(crate) fn has_descriptors_left(&self) -> bool {
        !self.descriptors.is_empty()
    }
}
