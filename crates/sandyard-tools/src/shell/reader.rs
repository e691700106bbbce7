//! Reads the terminal of a shell until the shell ends.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use pty_process::OwnedReadPty;
use tokio::io::AsyncReadExt;
use tokio::process::Child;

use super::session::Session;

/// How long to read the rest of the output after the shell ended.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum number of bytes to read after the end. Background programs may write without end.
const MAX_DRAIN_BYTES: usize = 256 * 1024;
/// Pause before reading a terminal again that no process has open.
const RETRY: Duration = Duration::from_millis(100);

/// Reads until the shell ends. Dropping the reader closes the terminal, which sends SIGHUP to everything in it.
pub(super) async fn follow(session: Arc<Session>, mut reader: OwnedReadPty, mut child: Child) {
    let mut buffer = vec![0; 16 * 1024];
    let status = loop {
        tokio::select! {
            read = reader.read(&mut buffer) => match read {
                Ok(count) if count > 0 => {
                    session.receive_output(&buffer[..count]);
                    // Let other sessions run when this one writes a lot.
                    tokio::task::yield_now().await;
                }
                // No process has the terminal open: the shell is about to end, or has closed it.
                _ => {
                    if let Ok(status) = tokio::time::timeout(RETRY, child.wait()).await {
                        break status;
                    }
                }
            },
            status = child.wait() => break status,
        }
    };
    let mut drained = 0;
    // One deadline for everything, because a background program may write now and then for hours.
    let end = tokio::time::Instant::now() + DRAIN_TIMEOUT;
    while drained < MAX_DRAIN_BYTES {
        match tokio::time::timeout_at(end, reader.read(&mut buffer)).await {
            Ok(Ok(count)) if count > 0 => {
                drained += count;
                session.receive_output(&buffer[..count]);
            }
            _ => break,
        }
    }
    session.end(status.map_or(-1, exit_code));
}

/// The exit code as shells report it.
pub(super) fn exit_code(status: ExitStatus) -> i32 {
    let by_signal = || status.signal().map_or(-1, |signal| 128 + signal);
    status.code().unwrap_or_else(by_signal)
}
