//! Changes for one client as they happen.

use std::time::Duration;

use bytes::Bytes;
use sandyard_wire::filesystem::WatchDirResponse;
use sandyard_wire::{Code, ConnectError, frame};
use tokio::time::Instant;

use super::hub::Watching;
use crate::activity::OpenStream;
use crate::socket::Peer;

/// A stream of changes, pulled one frame at a time.
#[derive(Debug)]
pub(super) struct WatchStream {
    watching: Watching,
    peer: Peer,
    keepalive: Duration,
    deadline: Option<Instant>,
    stage: Stage,
    _open: OpenStream,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Start,
    Events,
    Done,
}

impl WatchStream {
    pub(super) fn new(
        watching: Watching,
        peer: Peer,
        keepalive: Duration,
        deadline: Option<Instant>,
        open: OpenStream,
    ) -> Self {
        Self {
            watching,
            peer,
            keepalive,
            deadline,
            stage: Stage::Start,
            _open: open,
        }
    }

    /// The next frame; `None` when the stream has ended.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        match self.stage {
            Stage::Start => {
                self.stage = Stage::Events;
                Some(message(&WatchDirResponse::Start))
            }
            Stage::Events => self.next_event().await,
            Stage::Done => None,
        }
    }

    async fn next_event(&mut self) -> Option<Bytes> {
        loop {
            let changed = self.watching.watcher.changed.notified();
            match self.watching.watcher.pop() {
                Ok(Some(event)) => return Some(message(&WatchDirResponse::Filesystem(event))),
                Ok(None) => {}
                Err(error) => {
                    self.stage = Stage::Done;
                    return Some(frame::encode_end(Some(error)));
                }
            }
            tokio::select! {
                () = changed => {}
                () = self.peer.closed() => {
                    self.stage = Stage::Done;
                    return None;
                }
                () = tokio::time::sleep(self.keepalive) => {
                    return Some(message(&WatchDirResponse::Keepalive));
                }
                () = expiry(self.deadline) => {
                    self.stage = Stage::Done;
                    let error = ConnectError::new(
                        Code::DeadlineExceeded,
                        "the watch exceeded its time limit",
                    );
                    return Some(frame::encode_end(Some(error)));
                }
            }
        }
    }
}

async fn expiry(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn message(message: &WatchDirResponse) -> Bytes {
    frame::encode_json(message).expect("changes hold nothing that JSON cannot")
}
