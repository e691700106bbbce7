//! Connecting with the agent, which may be on its way.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::time::Instant;

/// How long it may take to listen: the first process of a container has something to set up before.
const STARTING: Duration = Duration::from_secs(20);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// Connects, waiting while nobody listens there yet, or the listener's queue is full.
pub(super) async fn connect(socket: &Path) -> io::Result<UnixStream> {
    let give_up = Instant::now() + STARTING;
    loop {
        match UnixStream::connect(socket).await {
            Err(error) if is_not_yet(&error) && Instant::now() < give_up => {
                tokio::time::sleep(PAUSE).await;
            }
            connected => return connected,
        }
    }
}

fn is_not_yet(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused | io::ErrorKind::WouldBlock
    )
}
