//! The calls of `process.Process`.

use std::rc::Rc;
use std::time::Duration;

use http::{HeaderValue, StatusCode};
use sandyard_wire::host::ReleaseRequest;
use sandyard_wire::process::{
    CloseStdinRequest, ConnectRequest, ListRequest, ProcessSelector, SendInputRequest,
    SendSignalRequest, Signal, StartRequest, StreamInputRequest, UpdateRequest,
};
use sandyard_wire::{
    Code, ConnectError, Decoder, Frame, json::Empty, query::Query, request, routes,
};
use tokio::time::Instant;

use super::input::InputLease;
use super::launch::{LaunchOptions, launch};
use super::reader::Reader;
use super::stdio;
use super::stream::{Deadline, EventStream};
use super::tracked_process::Process;
use super::tree;
use crate::body::Body;
use crate::call::{Call, Origin, Response, empty_reply, json_reply, plain_error, stream_reply};

/// How long the call waits for a kill before it answers.
const KILL_WAIT: Duration = Duration::from_secs(2);

/// Maximum size of one message of an input stream, in bytes.
const MAX_INPUT_FRAME: usize = 4 * 1024 * 1024;

/// Answers the unary calls; `None` when the path is not one of them.
pub(crate) async fn unary(call: &mut Call) -> Option<Result<Response, ConnectError>> {
    Some(match call.path() {
        routes::process::LIST => list(call).await,
        routes::process::UPDATE => update(call).await,
        routes::process::SEND_INPUT => send_input(call).await,
        routes::process::SEND_SIGNAL => send_signal(call).await,
        routes::process::CLOSE_STDIN => close_stdin(call).await,
        _ => return None,
    })
}

async fn list(call: &mut Call) -> Result<Response, ConnectError> {
    let _request: ListRequest = call.message().await?;
    Ok(json_reply(&call.agent.processes.list()))
}

async fn update(call: &mut Call) -> Result<Response, ConnectError> {
    let request: UpdateRequest = call.message().await?;
    let process = call.agent.processes.find_running(&request.process)?;
    if let Some(size) = request.pty.and_then(|pty| pty.size) {
        process
            .with_terminal(|terminal| stdio::resize(terminal, size))
            .ok_or_else(|| {
                ConnectError::new(Code::FailedPrecondition, "the process has no terminal")
            })?
            .map_err(|error| ConnectError::internal(format!("cannot resize: {error}")))?;
    }
    Ok(json_reply(&Empty {}))
}

async fn send_input(call: &mut Call) -> Result<Response, ConnectError> {
    let request: SendInputRequest = call.message().await?;
    let process = call.agent.processes.find_running(&request.process)?;
    process.write_input(&request.input, None).await?;
    Ok(json_reply(&Empty {}))
}

async fn close_stdin(call: &mut Call) -> Result<Response, ConnectError> {
    let request: CloseStdinRequest = call.message().await?;
    let process = call.agent.processes.find_running(&request.process)?;
    process.close_input().await?;
    Ok(json_reply(&Empty {}))
}

async fn send_signal(call: &mut Call) -> Result<Response, ConnectError> {
    let request: SendSignalRequest = call.message().await?;
    let process = call.agent.processes.find_running(&request.process)?;
    match request.signal {
        Signal::KILL => kill(&process).await,
        Signal(number @ 1..=64) => signal_group(&process, number)?,
        Signal(number) => {
            return Err(ConnectError::invalid_argument(format!(
                "{number} is not a signal"
            )));
        }
    }
    Ok(json_reply(&Empty {}))
}

/// Kills the whole tree, also when the caller disconnects.
async fn kill(process: &Rc<Process>) {
    tokio::task::spawn_local(tree::kill_descendants(process.supervisor));
    let _ = tokio::time::timeout(KILL_WAIT, process.wait_exited()).await;
}

/// Signals the command and what shares its process group, as a terminal would.
fn signal_group(process: &Process, number: i32) -> Result<(), ConnectError> {
    let pid = i32::try_from(process.pid).map_err(|_| ConnectError::internal("no such pid"))?;
    // SAFETY: plain system calls; the command is running, so the number is its own. Its session is not the agent's, so neither
    // is its group.
    let is_sent = unsafe {
        let group = libc::getpgid(pid);
        (group > 1 && libc::kill(-group, number) == 0) || libc::kill(pid, number) == 0
    };
    if is_sent {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    Err(ConnectError::internal(format!("cannot signal: {error}")))
}

/// Starts a command and streams its events.
pub(crate) async fn start(call: &mut Call) -> Result<Response, ConnectError> {
    let deadline = request::timeout(call.headers())?.map(|timeout| Instant::now() + timeout);
    let request: StartRequest = call.stream_message().await?;
    let (account, accounts) = call.account()?;
    let agent = call.agent.clone();
    let options = LaunchOptions {
        retain_as: call.header(routes::header::RETAIN).map(str::to_owned),
        ..LaunchOptions::default()
    };
    // In a separate task, so that the process is registered even if the caller disconnects now.
    let launched = launch(agent, request, account, accounts, deadline, options);
    let launched = tokio::task::spawn_local(launched);
    let process = launched
        .await
        .map_err(|_| ConnectError::internal("the start was interrupted"))??;
    let deadline = deadline.map_or(Deadline::Never, Deadline::Process);
    Ok(events(call, process, 0, deadline))
}

/// Streams the events of a process that exists.
pub(crate) async fn connect(call: &mut Call) -> Result<Response, ConnectError> {
    let deadline = request::timeout(call.headers())?.map(|timeout| Instant::now() + timeout);
    let request: ConnectRequest = call.stream_message().await?;
    let retention_id = call.header(routes::header::RETAIN);
    let process = match retention_id {
        Some(id) => call.agent.processes.find_retained(id)?,
        None => call.agent.processes.find(&request.process)?,
    };
    let expected = call.headers().get(routes::header::PROCESS);
    if expected.is_some_and(|expected| expected.as_bytes() != process.unique_id.as_bytes()) {
        return Err(ConnectError::not_found(
            "the pid now belongs to another process",
        ));
    }
    let position = match request::number(call.headers(), routes::header::OUTPUT_OFFSET)? {
        Some(requested) => {
            let position = available_position(&process, requested)?;
            if retention_id.is_some() {
                process.note_recorded(requested);
            }
            position
        }
        None if process.readers.borrow().is_empty() => process.readers.borrow().delivered(),
        // Another reader gets the past output; a second reader starts at the current end.
        None => process.ring.borrow().end(),
    };
    let is_continued = call.headers().contains_key(routes::header::TAKE_INPUT);
    if is_continued {
        process.input_state.take_over();
    }
    let deadline = match deadline {
        Some(at) => Deadline::Stream(at),
        None if is_continued => Deadline::Continued,
        None => Deadline::Never,
    };
    Ok(events(call, process, position, deadline))
}

/// Where to continue: at the requested position, or at the oldest available output, which the answer's header shows.
fn available_position(process: &Process, requested: u64) -> Result<u64, ConnectError> {
    let ring = process.ring.borrow();
    if requested > ring.end() {
        return Err(ConnectError::new(
            Code::OutOfRange,
            format!(
                "there is no output at position {requested} yet: it ends at {}",
                ring.end()
            ),
        ));
    }
    drop(ring);
    Ok(requested.max(process.output_start()))
}

fn events(call: &Call, process: Rc<Process>, position: u64, deadline: Deadline) -> Response {
    let begins = position.max(process.output_start());
    let is_relayed =
        call.origin == Origin::Host && call.headers().contains_key(routes::header::RELAYED);
    let mut reader = Reader::attach(&process, position, is_relayed);
    reader.is_recorder = call.headers().contains_key(routes::header::RETAIN);
    let name = is_relayed.then(|| reader.name());
    let unique_id = HeaderValue::try_from(&process.unique_id).ok();
    // A name with a control character cannot be in a header.
    let cwd = HeaderValue::from_bytes(process.cwd.as_bytes()).ok();
    let has_terminal = u64::from(process.is_terminal);
    let input_offset = process.input_state.bytes_written();
    let stream = EventStream::new(
        process,
        reader,
        call.peer.clone(),
        request::keepalive(call.headers()),
        deadline,
    );
    let body = Body::from_frames(stream, async |stream| stream.next().await);
    let mut reply = stream_reply(body);
    reply
        .headers_mut()
        .insert(routes::header::OUTPUT_OFFSET, begins.into());
    reply
        .headers_mut()
        .insert(routes::header::INPUT_OFFSET, input_offset.into());
    reply
        .headers_mut()
        .insert(routes::header::TERMINAL, has_terminal.into());
    if let Some(unique_id) = unique_id {
        reply
            .headers_mut()
            .insert(routes::header::PROCESS, unique_id);
    }
    if let Some(cwd) = cwd {
        reply.headers_mut().insert(routes::header::CWD, cwd);
    }
    if let Some(name) = name.and_then(|name| HeaderValue::try_from(name).ok()) {
        reply.headers_mut().insert(routes::header::READER, name);
    }
    reply
}

/// Confirms that a relayed reader has delivered all output.
pub(crate) fn finish_relay(call: &Call) -> Response {
    let query = Query::of(&call.parts.uri);
    let named = query.get(routes::query::READER).and_then(|name| {
        let (pid, id) = name.split_once('-')?;
        Some((pid.parse().ok()?, id.parse().ok()?))
    });
    if let Some((pid, id)) = named
        && let Ok(process) = call.agent.processes.find(&ProcessSelector::Pid(pid))
    {
        process.readers.borrow_mut().confirm(id);
    }
    empty_reply(StatusCode::NO_CONTENT)
}

/// Releases retained commands whose output and end are recorded.
pub(crate) async fn release(call: &mut Call) -> Response {
    match call.message::<ReleaseRequest>().await {
        Ok(request) => {
            call.agent.processes.release(&request.ids);
            empty_reply(StatusCode::NO_CONTENT)
        }
        Err(error) => plain_error(StatusCode::BAD_REQUEST, error.message),
    }
}

/// Writes a stream of messages to a process.
pub(crate) async fn stream_input(call: &mut Call) -> Result<Response, ConnectError> {
    let mut decoder = Decoder::new(MAX_INPUT_FRAME);
    let mut target: Option<(Rc<Process>, InputLease)> = None;
    let _open = call.agent.counters.open_stream();
    while let Some(piece) = call.body.next_piece().await? {
        decoder.push(&piece);
        while let Some(frame) = decoder.next_frame().map_err(request::bad_frame)? {
            if let Frame::Message(message) = frame {
                take_input(call, &mut target, &message).await?;
            }
        }
    }
    decoder.finish().map_err(request::bad_frame)?;
    let answer = sandyard_wire::frame::encode_json(&Empty {});
    let answer = answer.map_err(|error| ConnectError::internal(error.to_string()))?;
    let end = sandyard_wire::frame::encode_end(None);
    Ok(stream_reply(Body::full([answer, end].concat())))
}

async fn take_input(
    call: &Call,
    target: &mut Option<(Rc<Process>, InputLease)>,
    message: &[u8],
) -> Result<(), ConnectError> {
    match (request::parse(message)?, &target) {
        (StreamInputRequest::Start { process }, None) => {
            let process = call.agent.processes.find_running(&process)?;
            let lease = process.input_state.lease();
            *target = Some((process, lease));
            Ok(())
        }
        (StreamInputRequest::Data { input }, Some((process, lease))) => {
            process.write_input(&input, Some(*lease)).await
        }
        (StreamInputRequest::Keepalive {}, _) => Ok(()),
        (StreamInputRequest::Start { .. }, Some(_)) => Err(ConnectError::invalid_argument(
            "an input stream starts only once",
        )),
        (StreamInputRequest::Data { .. }, None) => Err(ConnectError::invalid_argument(
            "an input stream starts by naming its process",
        )),
    }
}
