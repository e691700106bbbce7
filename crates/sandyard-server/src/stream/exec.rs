//! Commands with input over WebSocket.

use std::time::Duration;

use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use sandyard_service::{Live, RunRequest};

use super::child::Child;
use super::control::ExecRequest;
use super::socket::{self, Framing, Terminal};
use crate::listen::Shutdown;
use crate::prelude::*;

/// Longest wait for the message that names the command.
const FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Run a command over WebSocket
///
/// The first message, in text, names the command: `{"command" | "argv", "tty": {"cols", "rows"} | null, "cwd", "env",
/// "user", "timeout"}`. From then on, binary messages are standard input, and text messages are
/// `{"type":"resize","cols","rows"}`, `{"type":"signal","signal":"SIGINT"}` or `{"type":"eof"}`.
///
/// The server sends `{"type":"start","pid"}`, then binary messages that begin with a byte, 1 for standard output and 2
/// for standard error, followed by output. The last message is `{"type":"exit","exit_code"}` or
/// `{"type":"error","code","detail"}`. When the client disconnects, the command is killed.
#[utoipa::path(
    get, path = "/sandboxes/{id}/exec", tag = "commands", params(SandboxName),
    responses((status = 101, description = "WebSocket opened."))
)]
pub(super) async fn exec(
    call: Call,
    name: SandboxName,
    shutdown: Shutdown,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> ApiResult<Response> {
    let upgrade = upgrade.map_err(|error| not_a_socket(&error.body_text()))?;
    let live = call.live(&name.id).await?;
    Ok(
        socket::bounded(upgrade).on_upgrade(move |socket| async move {
            let _hold = shutdown.hold();
            run(call, live, socket, shutdown.clone()).await;
        }),
    )
}

/// The response to a plain request where a WebSocket is required.
pub(super) fn not_a_socket(reason: &str) -> ApiError {
    let error = ServiceError::new(
        ErrorKind::BadRequest,
        format!("this route requires a WebSocket: {reason}"),
    );
    error
        .hint("connect with ws:// or wss://, or use /sandboxes/run-command-stream")
        .into()
}

async fn run(call: Call, live: Live, mut socket: WebSocket, shutdown: Shutdown) {
    let first = tokio::select! {
        first = tokio::time::timeout(FIRST_MESSAGE_TIMEOUT, first_message(&mut socket)) => first,
        () = shutdown.wait() => return,
    };
    let request = match first {
        Ok(Some(request)) => request,
        Ok(None) => return,
        Err(_) => Err(ServiceError::new(
            ErrorKind::TimedOut,
            format!(
                "no message with the command to run within {} s",
                FIRST_MESSAGE_TIMEOUT.as_secs()
            ),
        )),
    };
    let started = match request {
        Ok(request) => {
            let terminal = Terminal(request.terminal.is_some());
            Child::start(&call, live, request)
                .await
                .map(|child| (child, terminal))
        }
        Err(error) => Err(error),
    };
    match started {
        Ok((child, terminal)) => {
            socket::attach(socket, child, Framing::Numbered, terminal, shutdown).await;
        }
        Err(error) => socket::refuse(socket, &error).await,
    }
}

/// Waits for the command to run; none when the client has disconnected.
async fn first_message(socket: &mut WebSocket) -> Option<ServiceResult<RunRequest>> {
    loop {
        return match socket.recv().await?.ok()? {
            Message::Text(text) => Some(read(&text)),
            Message::Binary(_) => Some(Err(ServiceError::new(
                ErrorKind::Invalid,
                "the first message must be text: JSON with the command to run",
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
