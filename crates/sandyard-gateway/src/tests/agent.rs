//! An agent that says whatever a test wants it to.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use bytes::Bytes;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use sandyard_agent_client::Endpoint;
use sandyard_wire::egress::{self, FromAgent, ToAgent, Via};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// The agent's door, before the gateway has come.
pub(super) struct Listener {
    listener: UnixListener,
    folder: TempDir,
}

impl Listener {
    pub(super) fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("agent.sock")).unwrap();
        Self { listener, folder }
    }

    pub(super) fn endpoint(&self) -> Endpoint {
        Endpoint::Unix(self.folder.path().join("agent.sock"))
    }

    /// Waits for the gateway.
    pub(super) async fn accept(&self) -> Agent {
        let (mut stream, _) = self.listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        assert!(head.starts_with(b"GET /egress HTTP/1.1\r\n"));
        let answer = b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\r\n";
        stream.write_all(answer).await.unwrap();
        Agent {
            stream,
            received: Vec::new(),
        }
    }
}

/// An agent with a channel.
pub(super) struct Agent {
    pub(super) stream: UnixStream,
    received: Vec<u8>,
}

impl Agent {
    /// What the gateway says next.
    pub(super) async fn receive(&mut self) -> ToAgent {
        loop {
            if let Some(message) = egress::decode(&mut self.received).unwrap() {
                return message;
            }
            let mut piece = [0; 1024];
            let count = self.stream.read(&mut piece).await.unwrap();
            assert_ne!(count, 0, "the gateway hung up");
            self.received.extend_from_slice(&piece[..count]);
        }
    }

    /// Says something, with a descriptor or without.
    pub(super) async fn say(&self, message: &FromAgent, descriptor: Option<BorrowedFd<'_>>) {
        let frame = egress::encode(message).unwrap();
        self.send(&frame, descriptor).await;
    }

    /// Sends bytes as they are.
    pub(super) async fn send(&self, bytes: &[u8], descriptor: Option<BorrowedFd<'_>>) {
        let send = || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            let descriptors = descriptor.as_slice();
            if descriptor.is_some() {
                assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
            }
            let slices = [IoSlice::new(bytes)];
            let flags = SendFlags::DONTWAIT;
            Ok(rustix::net::sendmsg(
                &self.stream,
                &slices,
                &mut control,
                flags,
            )?)
        };
        let sent = self.stream.async_io(tokio::io::Interest::WRITABLE, send);
        assert_eq!(sent.await.unwrap(), bytes.len());
    }

    /// A program that connects, as a redirected one would. Returns its end.
    pub(super) async fn connect(&self, host: &str, port: u16) -> TcpStream {
        self.connect_via(host, port, Via::Redirect, b"").await
    }

    pub(super) async fn connect_via(
        &self,
        host: &str,
        port: u16,
        via: Via,
        early: &'static [u8],
    ) -> TcpStream {
        let (program, accepted) = pair().await;
        let open = FromAgent::Open {
            host: host.to_owned(),
            port,
            via,
            early: Bytes::from_static(early),
        };
        self.say(&open, Some(accepted.as_fd())).await;
        program
    }
}

/// Two ends of a TCP connection.
pub(super) async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let (program, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
    (program.unwrap(), accepted.unwrap().0)
}
