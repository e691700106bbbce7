//! The calls of the service `process.Process`.

use std::sync::Arc;

use http_body_util::BodyExt;
use sandyard_wire::json::Empty;
use sandyard_wire::process::{
    CloseStdinRequest, ConnectRequest, ListRequest, SendInputRequest, SendSignalRequest,
    StartRequest, StreamInputRequest, UpdateRequest,
};
use sandyard_wire::routes::{self, content_type, header};
use sandyard_wire::{Code, ConnectError, Decoder, EndEvent, Frame, frame, request};
use tokio::time::Instant;

use super::stream::{Events, Reader, Stage, next_frame};
use super::{Process, refused};
use crate::agent::Result;
use crate::agent::call::{Call, Response, full, json_reply, stream_reply, typed};
use crate::agent::commands::Runner;
use crate::agent::route::no_such_call;

/// Answers the calls with one message and one response.
pub(crate) async fn unary(call: &mut Call) -> Result<Response> {
    let machine = call.machine.clone();
    let processes = &machine.processes;
    match call.path() {
        routes::process::LIST => {
            let _request: ListRequest = call.message().await?;
            return Ok(json_reply(&processes.list()));
        }
        routes::process::UPDATE => {
            let request: UpdateRequest = call.message().await?;
            let process = processes.find(&request.process, true)?;
            if request.pty.is_some() && !process.is_terminal {
                return Err(refused("the process has no terminal"));
            }
        }
        routes::process::SEND_INPUT => {
            let request: SendInputRequest = call.message().await?;
            processes
                .find(&request.process, true)?
                .write_input(request.input)?;
        }
        routes::process::CLOSE_STDIN => {
            let request: CloseStdinRequest = call.message().await?;
            processes.find(&request.process, true)?.close_input()?;
        }
        routes::process::SEND_SIGNAL => {
            let request: SendSignalRequest = call.message().await?;
            let process = processes.find(&request.process, true)?;
            let number = request.signal.0;
            if !(1..=64).contains(&number) {
                return Err(ConnectError::invalid_argument(format!(
                    "{number} is not a signal"
                )));
            }
            process.signal(number);
        }
        _ => return Err(no_such_call()),
    }
    Ok(json_reply(&Empty {}))
}

/// Answers the streaming calls.
pub(crate) async fn stream(call: &mut Call) -> Result<Response> {
    match call.path() {
        routes::process::START => start(call).await,
        routes::process::CONNECT => connect(call).await,
        _ => stream_input(call).await,
    }
}

async fn start(call: &mut Call) -> Result<Response> {
    let deadline = request::timeout(&call.parts.headers)?.map(|timeout| Instant::now() + timeout);
    let request: StartRequest = call.stream_message().await?;
    let account = call.account()?;
    let has_input = request.pty.is_some() || request.stdin.unwrap_or(true);
    let runner = Runner::prepare(&call.machine, account, &request.process)?;
    let is_terminal = request.pty.is_some();
    let processes = &call.machine.processes;
    let process = processes.add(request.process, request.tag, is_terminal, has_input)?;
    tokio::spawn(run(process.clone(), runner, deadline));
    Ok(events(call, process, 0, None, true))
}

/// Runs a command until it exits, is killed or times out.
async fn run(process: Arc<Process>, runner: Runner, deadline: Option<Instant>) {
    let expiry = async {
        match deadline {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    };
    let (end, timed_out) = tokio::select! {
        biased;
        number = process.signalled() => (killed(number), false),
        code = runner.run(&process) => (exited(code), false),
        () = expiry => (killed(9), true),
    };
    process.finish(end, timed_out);
}

fn exited(code: i32) -> EndEvent {
    let status = format!("exit status {code}");
    EndEvent {
        exit_code: code,
        exited: true,
        error: (code != 0).then(|| status.clone()),
        status,
    }
}

fn killed(number: i32) -> EndEvent {
    let name = match number {
        1 => "hangup".to_owned(),
        2 => "interrupt".to_owned(),
        9 => "killed".to_owned(),
        15 => "terminated".to_owned(),
        number => format!("signal {number}"),
    };
    let status = format!("signal: {name}");
    EndEvent {
        exit_code: -1,
        exited: false,
        error: Some(status.clone()),
        status,
    }
}

async fn connect(call: &mut Call) -> Result<Response> {
    let deadline = request::timeout(&call.parts.headers)?.map(|timeout| Instant::now() + timeout);
    let request: ConnectRequest = call.stream_message().await?;
    let process = call.machine.processes.find(&request.process, false)?;
    let requested = request::number(&call.parts.headers, header::OUTPUT_OFFSET)?;
    let position = {
        let state = process.state.lock();
        match requested {
            Some(requested) if requested > state.end_offset => {
                let message = format!(
                    "output from {requested} is not available yet, only {}",
                    state.end_offset
                );
                return Err(ConnectError::new(Code::OutOfRange, message));
            }
            Some(requested) => requested.max(state.start),
            None if state.readers == 0 => state.delivered.max(state.start),
            // Another client is receiving the earlier output.
            None => state.end_offset,
        }
    };
    Ok(events(call, process, position, deadline, false))
}

fn events(
    call: &Call,
    process: Arc<Process>,
    position: u64,
    deadline: Option<Instant>,
    reports_timeout: bool,
) -> Response {
    let events = Events {
        reader: Reader::new(process, position),
        keepalive: request::keepalive(&call.parts.headers),
        deadline,
        reports_timeout,
        stage: Stage::Start,
    };
    let mut reply = stream_reply(events, next_frame);
    reply
        .headers_mut()
        .insert(header::OUTPUT_OFFSET, position.into());
    reply
}

/// Writes a stream of messages to a process.
async fn stream_input(call: &mut Call) -> Result<Response> {
    let mut decoder = Decoder::default();
    let mut target = None;
    while let Some(piece) = call.body.frame().await {
        let piece = piece.map_err(|error| ConnectError::new(Code::Canceled, error.to_string()))?;
        decoder.push(&piece.into_data().unwrap_or_default());
        while let Some(frame) = decoder.next_frame().map_err(request::bad_frame)? {
            if let Frame::Message(message) = frame {
                take_input(call, &mut target, &message)?;
            }
        }
    }
    decoder.finish().map_err(request::bad_frame)?;
    let answer = frame::encode_json(&Empty {}).unwrap_or_default();
    let body = [answer, frame::encode_end(None)].concat();
    Ok(typed(
        http::StatusCode::OK,
        content_type::CONNECT_JSON,
        full(body),
    ))
}

fn take_input(call: &Call, target: &mut Option<Arc<Process>>, message: &[u8]) -> Result<()> {
    match (request::parse(message)?, &target) {
        (StreamInputRequest::Start { process }, None) => {
            *target = Some(call.machine.processes.find(&process, true)?);
            Ok(())
        }
        (StreamInputRequest::Data { input }, Some(process)) => process.write_input(input),
        (StreamInputRequest::Keepalive {}, _) => Ok(()),
        (StreamInputRequest::Start { .. }, Some(_)) => Err(ConnectError::invalid_argument(
            "an input stream can start only once",
        )),
        (StreamInputRequest::Data { .. }, None) => Err(ConnectError::invalid_argument(
            "an input stream must start with its process",
        )),
    }
}
