//! Projects, checkpoints, ports and databases.

mod checkpoint;
mod database;
mod port;
mod project;
#[cfg(test)]
mod tests;

use crate::tool::Tool;

/// The tools.
pub(crate) fn tools() -> Vec<Tool> {
    vec![
        project::tool(),
        checkpoint::tool(),
        port::tool(),
        database::tool(),
    ]
}

/// Returns whether a program listens on a loopback port.
async fn listens(port: u16) -> bool {
    use std::net::{Ipv4Addr, Ipv6Addr};
    let limit = std::time::Duration::from_secs(2);
    let v4 = tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port));
    if matches!(tokio::time::timeout(limit, v4).await, Ok(Ok(_))) {
        return true;
    }
    let v6 = tokio::net::TcpStream::connect((Ipv6Addr::LOCALHOST, port));
    matches!(tokio::time::timeout(limit, v6).await, Ok(Ok(_)))
}
