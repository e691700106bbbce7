//! Terminals over WebSocket, in the form that terminal emulators in browsers use.

use axum::extract::ws::WebSocketUpgrade;
use sandyard_service::{Command, RunRequest};

use super::child::Child;
use super::control::set_term;
use super::exec::not_a_socket;
use super::socket::{self, Framing, Terminal};
use crate::listen::Shutdown;
use crate::model::command::run_request;
use crate::prelude::*;

/// A login shell: bash if the sandbox has it, else sh.
const SHELL: &str = "if command -v bash >/dev/null 2>&1; then exec bash -l; else exec sh -l; fi";

/// Longest command in a query, in bytes: the request line is bounded. Longer commands use `exec`.
const MAX_COMMAND: usize = 2048;
/// Longest working directory in a query, for the same reason.
const MAX_CWD: usize = 1024;

/// The terminal to open.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PtyQuery {
    /// Width of the terminal in columns, 1–4096 (default 80).
    #[param(inline)]
    cols: Option<BoundedInt<1, 4096>>,
    /// Height of the terminal in rows, 1–4096 (default 24).
    #[param(inline)]
    rows: Option<BoundedInt<1, 4096>>,
    /// Command to run by `bash -lc`. Default: a login shell.
    #[param(min_length = 1, max_length = 2048, pattern = r"^[^\u0000]+$")]
    command: Option<String>,
    /// Working directory. Default: the user's home directory, or the operator's `sandbox.workdir`.
    #[param(min_length = 1, max_length = 1024, pattern = r"^[^\u0000]+$")]
    cwd: Option<String>,
    /// User inside the sandbox who runs the shell. Default: the sandbox's default user.
    #[param(min_length = 1, max_length = 64, pattern = r"^[^\u0000]+$")]
    user: Option<String>,
}

/// Open a terminal over WebSocket
///
/// Starts a shell, or `command`, in a pseudo-terminal. Binary messages are the bytes of the terminal, in both
/// directions. Text messages of the client are `{"type":"resize","cols","rows"}`, `{"type":"signal","signal"}` or
/// `{"type":"eof"}`. Text messages of the server are `{"type":"start","pid"}`, `{"type":"exit","exit_code"}` or
/// `{"type":"error","code","detail"}`. When the client disconnects, the shell is killed.
#[utoipa::path(
    get, path = "/sandboxes/{id}/pty", tag = "commands", params(SandboxName, PtyQuery),
    responses((status = 101, description = "WebSocket opened."))
)]
pub(super) async fn open_pty(
    call: Call,
    name: SandboxName,
    Query(query): Query<PtyQuery>,
    shutdown: Shutdown,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> ApiResult<Response> {
    let upgrade = upgrade.map_err(|error| not_a_socket(&error.body_text()))?;
    let request = query.into_request()?;
    let live = call.live(&name.id).await?;
    Ok(
        socket::bounded(upgrade).on_upgrade(move |socket| async move {
            let _hold = shutdown.hold();
            match Child::start(&call, live, request).await {
                Ok(child) => {
                    socket::attach(
                        socket,
                        child,
                        Framing::Plain,
                        Terminal(true),
                        shutdown.clone(),
                    )
                    .await;
                }
                Err(error) => socket::refuse(socket, &error).await,
            }
        }),
    )
}

impl PtyQuery {
    fn into_request(self) -> ServiceResult<RunRequest> {
        let side = |requested: Option<BoundedInt<1, 4096>>, default| {
            requested.map_or(default, |side| u16::try_from(side.0).unwrap_or(default))
        };
        let (cols, rows) = (side(self.cols, 80), side(self.rows, 24));
        bounds::optional_text("command", self.command.as_deref(), 1, MAX_COMMAND)?;
        bounds::optional_text("cwd", self.cwd.as_deref(), 1, MAX_CWD)?;
        let command = self.command.map_or_else(
            || Command::Argv(["sh", "-c", SHELL].map(str::to_owned).to_vec()),
            Command::Shell,
        );
        let mut request = run_request(command, self.cwd, None, self.user, None)?;
        request.terminal = Some((cols, rows));
        request.has_stdin = true;
        set_term(&mut request);
        Ok(request)
    }
}
