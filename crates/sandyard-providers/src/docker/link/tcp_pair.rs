//! Two ends of a TCP connection, one of them for the gateway.
//!
//! Unix sockets are not possible: a gateway only accepts TCP sockets from agents, and uses a reset to show programs that data was
//! lost. A Unix socket has no reset: its end always looks intended.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

/// Far longer than a loopback connection takes.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Creates a connection over loopback.
pub(super) async fn connect_pair() -> io::Result<(TcpStream, TcpStream)> {
    let work = async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let client = TcpStream::connect(address).await?;
        let expected = client.local_addr()?;
        loop {
            // Other programs on this host can connect, too; their connections are dropped.
            let (server, from) = listener.accept().await?;
            if from == expected {
                return Ok((client, server));
            }
        }
    };
    let connect_pair = tokio::time::timeout(CONNECT_TIMEOUT, work).await;
    connect_pair.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}
