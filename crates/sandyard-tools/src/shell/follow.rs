//! Follows a shell: hears what its terminal says until it ends.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use pty_process::OwnedReadPty;
use tokio::io::AsyncReadExt;
use tokio::process::Child;

use super::session::Session;

/// How long the last words of a shell that ended may take to arrive, all of them.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How much is heard after the end: background programs may go on without end.
const MAX_LAST_WORDS: usize = 256 * 1024;
/// How often a terminal that nobody has open is tried again.
const RETRY: Duration = Duration::from_millis(100);

/// Until the shell ends. Dropping the reader closes the terminal, which tells everything in it to end.
pub(super) async fn follow(session: Arc<Session>, mut reader: OwnedReadPty, mut child: Child) {
    let mut buffer = vec![0; 16 * 1024];
    let status = loop {
        tokio::select! {
            heard = reader.read(&mut buffer) => match heard {
                Ok(count) if count > 0 => {
                    session.hear(&buffer[..count]);
                    // A flood in one session leaves the others their turn.
                    tokio::task::yield_now().await;
                }
                // Nobody has the terminal open: the shell is about to end, or has closed all it had of it.
                _ => {
                    if let Ok(status) = tokio::time::timeout(RETRY, child.wait()).await {
                        break status;
                    }
                }
            },
            status = child.wait() => break status,
        }
    };
    let mut heard = 0;
    // One end for all of them: a background program may say something every now and then for hours.
    let end = tokio::time::Instant::now() + LAST_WORDS;
    while heard < MAX_LAST_WORDS {
        match tokio::time::timeout_at(end, reader.read(&mut buffer)).await {
            Ok(Ok(count)) if count > 0 => {
                heard += count;
                session.hear(&buffer[..count]);
            }
            _ => break,
        }
    }
    session.end(status.map_or(-1, exit_code));
}

/// The exit code as shells tell it.
pub(super) fn exit_code(status: ExitStatus) -> i32 {
    let by_signal = || status.signal().map_or(-1, |signal| 128 + signal);
    status.code().unwrap_or_else(by_signal)
}
