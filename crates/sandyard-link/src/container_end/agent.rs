//! Connects to the agent, which may still be starting.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::time::Instant;

/// How long the agent may take to listen: the first process of a container sets up other things before.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// Connects; retries while nobody listens yet, or the listener's queue is full.
pub(super) async fn connect(socket: &Path) -> io::Result<UnixStream> {
    let give_up = Instant::now() + START_TIMEOUT;
    loop {
        match UnixStream::connect(socket).await {
            Err(error) if is_temporary(&error) && Instant::now() < give_up => {
                tokio::time::sleep(PAUSE).await;
            }
            connected => return connected,
        }
    }
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused | io::ErrorKind::WouldBlock
    )
}
