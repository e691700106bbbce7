//! A WebSocket to a process that already runs, or has ended lately.

use axum::extract::RawPathParams;
use axum::extract::ws::WebSocketUpgrade;
use sandyard_agent_client::wire::Code;
use sandyard_agent_client::wire::process::ProcessSelector;
use sandyard_agent_client::{ClientError, ProcessStream};
use sandyard_service::Live;

use super::child::Child;
use super::exec::not_a_socket;
use super::processes::{no_process, pid_of};
use super::socket::{self, Framing, Terminal};
use crate::listen::Shutdown;
use crate::prelude::*;

/// Longest `process` parameter, in characters.
const MAX_PROCESS_ID: usize = 64;

/// Where to continue.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct AttachQuery {
    /// Byte of the output to continue from: `output_offset` of the `start` message plus the bytes of output received
    /// since. Default: the oldest output that is still kept.
    output_offset: Option<u64>,
    /// Value of `process` in an earlier `start` message. The request fails with 404 if the process ID belongs to
    /// another process by now, and input of an earlier connection that did not arrive is discarded: send again what
    /// follows the new `input_offset`.
    #[param(min_length = 1, max_length = 64, pattern = r"^[^\u0000]+$")]
    process: Option<String>,
    /// Whether to kill the process when this client disconnects (default false).
    kill_on_disconnect: Option<bool>,
}

/// Attach to a process over WebSocket
///
/// The messages are those of `exec` after its first one. The `start` message tells in `tty` whether the process has a
/// terminal, and in `output_offset` where its output begins: later than requested if the sandbox no longer keeps that
/// much. For a process that ended within the last minutes, the server sends the output that is still kept and the exit
/// code. The process keeps running when the client disconnects, unless `kill_on_disconnect` is set.
#[utoipa::path(
    get, path = "/sandboxes/{id}/processes/{pid}/attach", tag = "commands",
    params(("pid" = u32, Path, description = "Process ID inside the sandbox."), SandboxName, AttachQuery),
    responses((status = 101, description = "WebSocket opened."))
)]
pub(super) async fn attach_process(
    call: Call,
    name: SandboxName,
    path_params: RawPathParams,
    Query(query): Query<AttachQuery>,
    shutdown: Shutdown,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> ApiResult<Response> {
    let upgrade = upgrade.map_err(|error| not_a_socket(&error.body_text()))?;
    let pid = pid_of(&path_params)?;
    bounds::optional_text("process", query.process.as_deref(), 1, MAX_PROCESS_ID)?;
    let live = call.live(&name.id).await?;
    let process = connect(&live, pid, &query).await?;
    let mut child = Child::attach(&call, live, process);
    if !query.kill_on_disconnect.unwrap_or(false) {
        child.detach();
    }
    let terminal = Terminal(child.identity().has_terminal.unwrap_or(false));
    Ok(
        socket::bounded(upgrade).on_upgrade(move |socket| async move {
            let _hold = shutdown.hold();
            socket::attach(socket, child, Framing::Numbered, terminal, shutdown.clone()).await;
        }),
    )
}

async fn connect(live: &Live, pid: u32, query: &AttachQuery) -> ServiceResult<ProcessStream> {
    let offset = query.output_offset.unwrap_or(0);
    let stream = match &query.process {
        Some(unique_id) => live.agent.take_over(pid, unique_id, offset).await,
        None => {
            let selector = ProcessSelector::Pid(pid);
            live.agent.connect_from(selector, offset).await
        }
    };
    stream.map_err(unknown_process)
}

fn unknown_process(error: ClientError) -> ServiceError {
    // A process that never wrote that much is another one with the same pid.
    if error.is_not_found() || error.code() == Some(Code::OutOfRange) {
        return no_process().source(error);
    }
    error.into()
}
