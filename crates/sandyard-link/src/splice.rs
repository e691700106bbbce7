//! A connection and a socket, as if they were one: what ends here ends there, and what breaks here breaks there.

use std::io;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use crate::carried::Carried;

/// With a Unix socket, to the end of both.
///
/// # Errors
/// What broke. Both are broken off then.
pub async fn unix(mut socket: UnixStream, carried: Carried) -> io::Result<()> {
    let (mut from_there, mut to_there) = tokio::io::split(carried);
    let (mut from_here, mut to_here) = socket.split();
    let there = one_way(&mut from_here, &mut to_there);
    let here = one_way(&mut from_there, &mut to_here);
    tokio::try_join!(there, here).map(drop)
}

/// With a TCP connection, to the end of both.
///
/// # Errors
/// What broke. Both are broken off then, the socket by a reset, unless everything had been written to it.
pub async fn tcp(mut socket: TcpStream, carried: Carried) -> io::Result<()> {
    // Until it is known to have all: whoever reads it must not take a part for the whole, also when this process is killed.
    sockopt::set_socket_linger(&socket, Some(Duration::ZERO))?;
    let _ = socket.set_nodelay(true);
    let (mut from_there, mut to_there) = tokio::io::split(carried);
    let (mut from_here, mut to_here) = socket.split();
    let there = one_way(&mut from_here, &mut to_there);
    let here = async {
        one_way(&mut from_there, &mut to_here).await?;
        Ok(sockopt::set_socket_linger(to_here.as_ref(), None)?)
    };
    tokio::try_join!(there, here).map(drop)
}

/// Ends a connection by a reset.
pub fn reset(socket: impl std::os::fd::AsFd) {
    let _ = sockopt::set_socket_linger(socket, Some(Duration::ZERO));
}

async fn one_way(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
) -> io::Result<()> {
    tokio::io::copy(from, to).await?;
    match to.shutdown().await {
        // The other side has gone, and has all.
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
        other => other,
    }
}
