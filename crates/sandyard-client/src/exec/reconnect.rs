//! Reconnects to a process after the connection to it was lost.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use tokio_tungstenite::tungstenite::Message;

use super::message::{ServerMessage, Start};
use super::{OPERATION, Sink, Source, closed, connect, connection_error};
use crate::Result;
use crate::client::Client;
use crate::error::ClientError;

/// Maximum time to reconnect: enough for an upgrade or restart of the server.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// First delay between two attempts; it doubles each time.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(3);
/// Maximum time for the start message on an open connection.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Sandbox of a session, and what happens when the client disconnects.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) client: Client,
    pub(super) sandbox: String,
    pub(super) kill_on_disconnect: bool,
}

/// Connection to a process that runs or ended recently.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) sink: Sink,
    pub(super) source: Source,
    pub(super) start: Start,
}

impl Target {
    /// Attaches to a process from the oldest output that is still kept.
    pub(super) async fn attach(&self, pid: u32) -> Result<Attached> {
        self.open(pid, &[]).await
    }

    /// Retries until the connection is restored, the server rejects it for good, or the time is over.
    pub(super) async fn reconnect(
        &self,
        process: &Start,
        output_offset: u64,
        since: Instant,
    ) -> Result<Attached> {
        let offset = output_offset.to_string();
        let unique_id = process.process.as_deref().unwrap_or_default();
        let query = [("process", unique_id), ("output_offset", offset.as_str())];
        let mut delay = FIRST_DELAY;
        loop {
            let error = match self.open(process.pid, &query).await {
                Ok(attached) => return Ok(attached),
                Err(error) => error,
            };
            if error.code() == Some("not_found") {
                return Err(self.disconnected(
                    process.pid,
                    "the process ended and its exit code is no longer known",
                ));
            }
            if !is_temporary(&error) {
                return Err(error);
            }
            if since.elapsed() + delay > RECONNECT_TIMEOUT {
                let minutes = RECONNECT_TIMEOUT.as_secs() / 60;
                return Err(ClientError::Disconnected {
                    sandbox: self.sandbox.clone(),
                    pid: process.pid,
                    problem: format!("could not reconnect within {minutes} minutes"),
                    source: Some(Box::new(error)),
                });
            }
            tokio::time::sleep(delay).await;
            delay = (2 * delay).min(MAX_DELAY);
        }
    }

    /// Error for lost input that the client no longer keeps.
    pub(super) fn input_lost(&self, pid: u32) -> ClientError {
        self.disconnected(pid, "input on its way to the process was lost")
    }

    fn disconnected(&self, pid: u32, problem: &str) -> ClientError {
        ClientError::Disconnected {
            sandbox: self.sandbox.clone(),
            pid,
            problem: problem.to_owned(),
            source: None,
        }
    }

    async fn open(&self, pid: u32, query: &[(&str, &str)]) -> Result<Attached> {
        let pid = pid.to_string();
        let segments = ["sandboxes", &self.sandbox, "processes", &pid, "attach"];
        let mut url = self.client.route(segments);
        url.query_pairs_mut().extend_pairs(query).append_pair(
            "kill_on_disconnect",
            if self.kill_on_disconnect {
                "true"
            } else {
                "false"
            },
        );
        let (sink, mut source) = connect::connect(&self.client, url).await?.split();
        let start = tokio::time::timeout(START_TIMEOUT, first_message(&mut source)).await;
        Ok(Attached {
            start: start.unwrap_or_else(|_| Err(closed()))?,
            sink,
            source,
        })
    }
}

async fn first_message(source: &mut Source) -> Result<Start> {
    loop {
        let text = match source.next().await {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
            Some(Err(error)) => return Err(connection_error(error)),
            Some(Ok(Message::Close(_))) | None => return Err(closed()),
            Some(Ok(_)) => {
                return Err(ClientError::Protocol {
                    operation: OPERATION,
                    problem: "output before the start of the command".to_owned(),
                });
            }
        };
        match ServerMessage::parse(text.as_str())? {
            ServerMessage::Start(start) => return Ok(start),
            ServerMessage::Error(error) => return Err(error),
            ServerMessage::Exit { .. } | ServerMessage::Other => {}
        }
    }
}

/// Whether a later attempt may succeed.
fn is_temporary(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable { .. } | ClientError::Connection { .. } => true,
        ClientError::Api(error) => {
            matches!(error.status, 408 | 429 | 500 | 502 | 503 | 504)
                || matches!(error.code.as_str(), "busy" | "unavailable")
        }
        _ => false,
    }
}
