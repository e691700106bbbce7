//! Two ends of a TCP connection, one of them for the gateway.
//!
//! Not a pair of Unix sockets: a gateway takes nothing but TCP from agents, for good reasons, and tells programs by a reset that
//! they have not got all. Unix sockets have none: their end looks the same whether it was meant or not.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

/// Far longer than a connection with ourselves takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connects with ourselves, over loopback.
pub(super) async fn connected() -> io::Result<(TcpStream, TcpStream)> {
    let connecting = async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let ours = TcpStream::connect(address).await?;
        let expected = ours.local_addr()?;
        loop {
            // Whoever else is on this host can knock, too, and is sent away.
            let (theirs, from) = listener.accept().await?;
            if from == expected {
                return Ok((ours, theirs));
            }
        }
    };
    let connected = tokio::time::timeout(PATIENCE, connecting).await;
    connected.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}
