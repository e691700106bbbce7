//! Commands over WebSocket, with input.

use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use sandyard_core::{Caller, ErrorKind};
use sandyard_service::{Live, RunRequest, ServiceError, ServiceResult};

use super::child::Child;
use super::control::ExecRequest;
use super::socket::{self, Framing, Terminal};
use crate::app::App;
use crate::error::ApiError;
use crate::extract::SandboxName;
use crate::listen::Ending;
use crate::need::Who;

/// How long a client may take to say what to run.
const FIRST_MESSAGE_TIME: Duration = Duration::from_secs(30);

/// Runs a command over WebSocket.
///
/// The first message, in text, says what: `{"command" | "argv", "tty": {"cols", "rows"} | null, "cwd", "env", "user",
/// "timeout"}`. From then on binary messages are input, and text is `{"type":"resize","cols","rows"}`,
/// `{"type":"signal","signal":"SIGINT"}` or `{"type":"eof"}`. We send `{"type":"start","pid"}`, then binary messages: a
/// byte, 1 for output and 2 for errors, and what was written; at last `{"type":"exit","exit_code"}` or
/// `{"type":"error","code","detail"}`. A client that goes takes the command with it.
#[utoipa::path(get, path = "/sandboxes/{id}/exec", operation_id = "exec", tag = "commands",
    params(SandboxName),
    responses(
        (status = 101, description = "A WebSocket")))]
pub(super) async fn exec(
    State(app): State<App>,
    Who(caller): Who,
    name: SandboxName,
    ending: Ending,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|error| not_a_socket(&error.body_text()))?;
    let live = app.service().live(&caller, &name.id).await?;
    Ok(
        socket::bounded(upgrade).on_upgrade(move |socket| async move {
            let _hold = ending.hold();
            run(app, caller, live, socket, ending.clone()).await;
        }),
    )
}

/// The answer to a plain request where a WebSocket was expected.
pub(super) fn not_a_socket(why: &str) -> ApiError {
    let error = ServiceError::new(
        ErrorKind::BadRequest,
        format!("a WebSocket is needed: {why}"),
    );
    error
        .hint("connect with ws:// or wss://, or use /sandboxes/run-command-stream")
        .into()
}

async fn run(app: App, caller: Caller, live: Live, mut socket: WebSocket, ending: Ending) {
    let first = tokio::select! {
        first = tokio::time::timeout(FIRST_MESSAGE_TIME, first_message(&mut socket)) => first,
        () = ending.wait() => return,
    };
    let request = match first {
        Ok(Some(request)) => request,
        Ok(None) => return,
        Err(_) => Err(ServiceError::new(
            ErrorKind::TimedOut,
            "no first message that says what to run",
        )),
    };
    let started = match request {
        Ok(request) => {
            let terminal = Terminal(request.terminal.is_some());
            Child::start(app.service(), &caller, live, request)
                .await
                .map(|child| (child, terminal))
        }
        Err(error) => Err(error),
    };
    match started {
        Ok((child, terminal)) => {
            socket::attach(socket, child, Framing::Numbered, terminal, ending).await;
        }
        Err(error) => socket::refuse(socket, &error).await,
    }
}

/// Waits for what to run; none when the client is gone.
async fn first_message(socket: &mut WebSocket) -> Option<ServiceResult<RunRequest>> {
    loop {
        return match socket.recv().await?.ok()? {
            Message::Text(text) => Some(read(&text)),
            Message::Binary(_) => Some(Err(ServiceError::new(
                ErrorKind::Invalid,
                "the first message is text: JSON that says what to run",
            ))),
            Message::Close(_) => None,
            Message::Ping(_) | Message::Pong(_) => continue,
        };
    }
}

fn read(text: &str) -> ServiceResult<RunRequest> {
    serde_json::from_str::<ExecRequest>(text)
        .map_err(|error| {
            let text = format!("cannot read the first message: {error}");
            ServiceError::new(ErrorKind::Invalid, text)
        })?
        .into_request()
}
