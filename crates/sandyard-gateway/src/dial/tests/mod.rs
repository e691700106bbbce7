//! Connections to real servers and proxies on loopback.

mod direct;
mod http;
mod socks;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::{Destination, Dialer};
use crate::names::testing::names_without_servers;

/// A password that must not be seen anywhere.
const PASSWORD: &str = "hunter2";

/// A dialer that sends everything by one proxy, and is not patient.
fn dialer_by(url: &str) -> Dialer {
    let dialer = Dialer::new(Some(url), |_| None, names_without_servers()).unwrap();
    Dialer {
        // No other test waits that long for anything.
        proxy_timeout: Duration::from_secs(20),
        ..dialer
    }
}

/// A dialer without proxies.
fn direct_dialer() -> Dialer {
    Dialer::new(None, |_| None, names_without_servers()).unwrap()
}

fn to_name(name: &str, addresses: &[&str], port: u16) -> Destination {
    Destination {
        name: Some(name.into()),
        addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
        port,
    }
}

fn to_address(at: SocketAddr) -> Destination {
    Destination {
        name: None,
        addresses: vec![at.ip()],
        port: at.port(),
    }
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let at = listener.local_addr().unwrap();
    (listener, at)
}

/// A port on loopback where nobody is, and nobody will be while it is held: it has a socket that does not listen.
fn deserted() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let at = socket.local_addr().unwrap();
    (socket, at)
}

/// A server that sends back what it gets, after a greeting of its own.
async fn start_echo() -> SocketAddr {
    let (listener, at) = listen().await;
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                stream.write_all(b"hello\n").await.unwrap();
                let (mut from, mut to) = stream.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
            });
        }
    });
    at
}

/// Speaks with an echo server: its greeting is whole, and bytes come back.
async fn expect_echo(stream: &mut TcpStream) {
    let mut greeting = [0; 6];
    stream.read_exact(&mut greeting).await.unwrap();
    assert_eq!(&greeting, b"hello\n");
    stream.write_all(b"ping").await.unwrap();
    let mut reply = [0; 4];
    stream.read_exact(&mut reply).await.unwrap();
    assert_eq!(&reply, b"ping");
}

/// A proxy that sends `reply_bytes` to every client, and then closes the connection or keeps it open.
async fn start_saying(reply_bytes: impl Into<Vec<u8>>, stays: bool) -> SocketAddr {
    let (listener, at) = listen().await;
    let reply_bytes = reply_bytes.into();
    tokio::spawn(async move {
        let mut open_streams = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            // What was asked is taken first: a socket that is closed with unread bytes resets the other side.
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(&reply_bytes).await;
            if stays {
                open_streams.push(stream);
            }
        }
    });
    at
}

fn v4(at: SocketAddr) -> IpAddr {
    at.ip()
}
