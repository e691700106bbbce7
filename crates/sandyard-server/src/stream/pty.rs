//! Terminals over WebSocket, in the form that terminal emulators in browsers speak.

use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::response::Response;
use sandyard_service::{Command, RunRequest, ServiceResult};
use serde::Deserialize;
use utoipa::IntoParams;

use super::child::Child;
use super::command::check;
use super::control::name_terminal;
use super::exec::not_a_socket;
use super::socket::{self, Framing, Terminal};
use crate::app::App;
use crate::bounds::{self, Whole};
use crate::error::ApiError;
use crate::extract::{Query, SandboxName};
use crate::listen::Ending;
use crate::need::Who;

/// A login shell: the better one, if there is one.
const SHELL: &str = "if command -v bash >/dev/null 2>&1; then exec bash -l; else exec sh -l; fi";

/// Longest command in a query: its whole request line must fit a header. Longer ones go through `exec`.
const MAX_COMMAND: usize = 2048;
/// Longest folder there, for the same reason.
const MAX_CWD: usize = 1024;

/// What terminal.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PtyQuery {
    /// Columns; 80 if not said.
    #[param(inline)]
    cols: Option<Whole<1, 4096>>,
    /// Rows; 24 if not said.
    #[param(inline)]
    rows: Option<Whole<1, 4096>>,
    /// What to run in it, by `bash -lc`; a login shell if not said.
    #[param(min_length = 1, max_length = 2048, pattern = r"^[^\u0000]+$")]
    command: Option<String>,
    /// Where; the user's home if not said.
    #[param(min_length = 1, max_length = 1024, pattern = r"^[^\u0000]+$")]
    cwd: Option<String>,
    /// As whom; the sandbox's user if not said.
    #[param(min_length = 1, max_length = 64, pattern = r"^[^\u0000]+$")]
    user: Option<String>,
}

/// Opens a terminal over WebSocket.
///
/// Binary messages are bytes of the terminal, both ways. Text from the client is `{"type":"resize","cols","rows"}`,
/// `{"type":"signal","signal"}` or `{"type":"eof"}`; text from us is `{"type":"start","pid"}`,
/// `{"type":"exit","exit_code"}` or `{"type":"error","code","detail"}`. A client that goes takes the shell with it.
#[utoipa::path(get, path = "/sandboxes/{id}/pty", operation_id = "open_pty", tag = "commands",
    params(SandboxName, PtyQuery),
    responses(
        (status = 101, description = "A WebSocket")))]
pub(super) async fn open_pty(
    State(app): State<App>,
    Who(caller): Who,
    name: SandboxName,
    Query(query): Query<PtyQuery>,
    ending: Ending,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|error| not_a_socket(&error.body_text()))?;
    let request = query.into_request()?;
    let live = app.service().live(&caller, &name.id).await?;
    Ok(
        socket::bounded(upgrade).on_upgrade(move |socket| async move {
            let _hold = ending.hold();
            match Child::start(app.service(), &caller, live, request).await {
                Ok(child) => {
                    socket::attach(
                        socket,
                        child,
                        Framing::Plain,
                        Terminal(true),
                        ending.clone(),
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
        let side = |given: Option<Whole<1, 4096>>, usual| {
            given.map_or(usual, |side| u16::try_from(side.0).unwrap_or(usual))
        };
        let (cols, rows) = (side(self.cols, 80), side(self.rows, 24));
        bounds::optional_text("command", self.command.as_deref(), 1, MAX_COMMAND)?;
        bounds::optional_text("cwd", self.cwd.as_deref(), 1, MAX_CWD)?;
        let command = self.command.map_or_else(
            || Command::Argv(["sh", "-c", SHELL].map(str::to_owned).to_vec()),
            Command::Shell,
        );
        let mut request = RunRequest::new(command);
        request.cwd = self.cwd;
        request.user = self.user;
        request.terminal = Some((cols, rows));
        request.has_stdin = true;
        name_terminal(&mut request);
        check(&request)?;
        Ok(request)
    }
}
