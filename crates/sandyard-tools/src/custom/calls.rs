//! Calls of tools of a user's MCP server.

use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, JsonObject, ServerResult,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use tokio::time::{sleep, timeout};

use super::server::{Link, SHUTDOWN_TIMEOUT, Server, State};
use super::{convert, redact};
use crate::call::Call;
use crate::reply::{Answer, Problem, Result};

/// How long a call waits for a server that is restarting. Longer in tests, which run on busy machines.
const RESTART_WAIT: Duration = Duration::from_secs(if cfg!(test) { 90 } else { 10 });
/// Maximum length of an error text, in bytes.
const MAX_REASON: usize = 4000;
/// How long a call may take without progress.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(60 * 60);

impl Server {
    /// Calls a tool of this server.
    pub(super) async fn call(&self, tool: String, arguments: JsonObject, call: Call) -> Answer {
        let link = self.link(&call).await?;
        let params = CallToolRequestParams::new(tool).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = link
            .peer
            .send_cancellable_request(request, PeerRequestOptions::no_options())
            .await;
        let mut handle = sent.map_err(|error| self.problem(&error))?;
        let token = handle.progress_token.clone();
        let mut progress = link.listener.watch(token.clone());
        let answer = loop {
            tokio::select! {
                biased;
                () = call.cancelled.cancelled() => break None,
                // Every progress notification restarts this timer.
                () = sleep(SILENCE_TIMEOUT) => break None,
                Some(notification) = progress.recv() => call.progress.report(convert::progress(&notification)).await,
                answer = &mut handle.rx => break Some(answer),
            }
        };
        link.listener.unwatch(&token);
        let Some(answer) = answer else {
            let reason = Some("the caller cancelled the call".into());
            let _ = timeout(SHUTDOWN_TIMEOUT, handle.cancel(reason)).await;
            return Err(Problem::new(
                "the call was cancelled, or made no progress for an hour",
            ));
        };
        match answer {
            Ok(Ok(ServerResult::CallToolResult(result))) => Ok(convert::reply(result)),
            Ok(Ok(_)) => Err(Problem::new(format!(
                "your MCP server `{}` sent an invalid answer",
                self.name
            ))),
            Ok(Err(error)) => Err(self.problem(&error)),
            Err(_) => Err(self.problem(&ServiceError::TransportClosed)),
        }
    }

    /// Waits for the connection to the server.
    async fn link(&self, call: &Call) -> Result<Link> {
        let mut state = self.state.subscribe();
        let is_up = |state: &State| match state {
            State::Up(link) => !link.peer.is_transport_closed(),
            _ => false,
        };
        self.called.notify_one();
        let up = async {
            match state.wait_for(is_up).await.as_deref() {
                Ok(State::Up(link)) => Some(link.clone()),
                _ => None,
            }
        };
        let link = tokio::select! {
            link = timeout(RESTART_WAIT, up) => link.ok().flatten(),
            () = call.cancelled.cancelled() => None,
        };
        link.ok_or_else(|| {
            let why = match &*self.state.borrow() {
                State::Down(why) => format!(": {why}"),
                _ => String::new(),
            };
            Problem::new(format!(
                "your MCP server `{}` is not running; it is being restarted, try again later{why}",
                self.name
            ))
        })
    }

    fn problem(&self, error: &ServiceError) -> Problem {
        let name = &self.name;
        let text = match error {
            ServiceError::McpError(error) => {
                format!(
                    "your MCP server `{name}` returned an error: {}",
                    error.message
                )
            }
            ServiceError::TransportClosed => format!(
                "your MCP server `{name}` ended during the call; it is being restarted, try again"
            ),
            other => format!("your MCP server `{name}` could not be called: {other}"),
        };
        Problem::new(redact::redacted(&self.config, text, MAX_REASON))
    }
}
