//! Calling the tools of one of the user's own servers.

use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, JsonObject, ServerResult,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use tokio::time::{sleep, timeout};

use super::server::{FAREWELL, Link, Server, State};
use super::{reasons, told};
use crate::call::Call;
use crate::reply::{Answer, Problem};

/// How long a call waits for a server that is being started again. Tests see that it is, on machines that may be busy.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 90 } else { 10 });
/// Longest reason.
const MAX_REASON: usize = 4000;
/// How long a call may go on without a word.
const SILENCE: Duration = Duration::from_secs(60 * 60);

impl Server {
    /// Calls one of its tools.
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
                // Each word of progress begins it anew.
                () = sleep(SILENCE) => break None,
                Some(told) = progress.recv() => call.progress.tell(told::progress(&told)).await,
                answer = &mut handle.rx => break Some(answer),
            }
        };
        link.listener.forget(&token);
        let Some(answer) = answer else {
            let words = Some("the caller does not want the answer any more".into());
            let _ = timeout(FAREWELL, handle.cancel(words)).await;
            return Err(Problem::new(
                "the call was cancelled, or nothing was heard of it for an hour",
            ));
        };
        match answer {
            Ok(Ok(ServerResult::CallToolResult(result))) => Ok(told::reply(result)),
            Ok(Ok(_)) => Err(Problem::new(format!(
                "your MCP server `{}` answered with something else than a result",
                self.name
            ))),
            Ok(Err(error)) => Err(self.problem(&error)),
            Err(_) => Err(self.problem(&ServiceError::TransportClosed)),
        }
    }

    /// The connection, once there is one.
    async fn link(&self, call: &Call) -> Result<Link, Problem> {
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
            link = timeout(PATIENCE, up) => link.ok().flatten(),
            () = call.cancelled.cancelled() => None,
        };
        link.ok_or_else(|| {
            let why = match &*self.state.borrow() {
                State::Down(why) => format!(": {why}"),
                _ => String::new(),
            };
            Problem::new(format!(
                "your MCP server `{}` is not running; it is being started again, try later{why}",
                self.name
            ))
        })
    }

    fn problem(&self, error: &ServiceError) -> Problem {
        let name = &self.name;
        let words = match error {
            ServiceError::McpError(error) => {
                format!("your MCP server `{name}` refused: {}", error.message)
            }
            ServiceError::TransportClosed => format!(
                "your MCP server `{name}` died during the call; it is being started again, try once more"
            ),
            other => format!("your MCP server `{name}` could not be called: {other}"),
        };
        Problem::new(reasons::shown(&self.config, words, MAX_REASON))
    }
}
