//! Changes of files.

use http::HeaderMap;
use sandyard_wire::filesystem::{FilesystemEvent, WatchDirResponse, WatchRequest};
use sandyard_wire::routes::filesystem as route;

use crate::call::within;
use crate::client::AgentClient;
use crate::error::{ClientError, Result};
use crate::stream::MessageStream;

/// Changes in one directory. Dropping it ends the watch.
#[derive(Debug)]
pub struct WatchStream {
    messages: MessageStream<WatchDirResponse>,
}

impl WatchStream {
    /// Waits for the next change. Loses nothing when cancelled.
    pub async fn next(&mut self) -> Option<Result<FilesystemEvent>> {
        loop {
            match self.messages.next().await? {
                Ok(WatchDirResponse::Filesystem(event)) => return Some(Ok(event)),
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl AgentClient {
    /// Watches a directory; every change after this returns is seen.
    pub async fn watch(&self, request: &WatchRequest) -> Result<WatchStream> {
        let call = route::WATCH_DIR;
        within(call, self.limits().call_timeout, async {
            let (mut messages, _) = self.open_stream(call, request, HeaderMap::new()).await?;
            while let Some(message) = messages.next().await {
                match message? {
                    WatchDirResponse::Start => return Ok(WatchStream { messages }),
                    WatchDirResponse::Filesystem(_) => {
                        return Err(ClientError::protocol(call, "first event is not the start"));
                    }
                    WatchDirResponse::Keepalive | WatchDirResponse::Other => {}
                }
            }
            Err(ClientError::protocol(call, "stream ends before the start"))
        })
        .await
    }
}
