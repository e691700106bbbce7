//! Copies between a connection of the link and a socket: an end or an error on one side becomes one on the other.

use std::io;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use crate::link_stream::LinkStream;

/// Copies between a Unix socket and a connection until both directions have ended.
///
/// # Errors
/// The first error of either side; both are aborted then.
pub async fn unix(mut socket: UnixStream, link_stream: LinkStream) -> io::Result<()> {
    let (mut from_link, mut to_link) = tokio::io::split(link_stream);
    let (mut from_socket, mut to_socket) = socket.split();
    let outward = copy_one_direction(&mut from_socket, &mut to_link);
    let inward = copy_one_direction(&mut from_link, &mut to_socket);
    tokio::try_join!(outward, inward).map(drop)
}

/// Copies between a TCP connection and a connection until both directions have ended.
///
/// # Errors
/// The first error of either side; both are aborted then, the socket by a reset, unless everything had been written to it.
pub async fn tcp(mut socket: TcpStream, link_stream: LinkStream) -> io::Result<()> {
    // Until everything is written: the reader must not take a part for the whole, also when this process is killed.
    sockopt::set_socket_linger(&socket, Some(Duration::ZERO))?;
    let _ = socket.set_nodelay(true);
    let (mut from_link, mut to_link) = tokio::io::split(link_stream);
    let (mut from_socket, mut to_socket) = socket.split();
    let outward = copy_one_direction(&mut from_socket, &mut to_link);
    let inward = async {
        copy_one_direction(&mut from_link, &mut to_socket).await?;
        Ok(sockopt::set_socket_linger(to_socket.as_ref(), None)?)
    };
    tokio::try_join!(outward, inward).map(drop)
}

/// Makes the close of a socket a reset.
pub fn reset(socket: impl std::os::fd::AsFd) {
    let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
}

async fn copy_one_direction(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    tokio::io::copy(from, to).await?;
    match to.shutdown().await {
        // The other side is gone and has everything.
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
        other => other,
    }
}
