//! Commands: start, follow, write to, signal.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use sandyard_wire::event::{EndEvent, ProcessEvent};
use sandyard_wire::host::{ReleaseRequest, RetainedCommand, RetainedCommands};
use sandyard_wire::json::Empty;
use sandyard_wire::process::{
    CloseStdinRequest, ConnectRequest, EventMessage, ListResponse, ProcessInfo, ProcessInput,
    ProcessSelector, Pty, PtySize, SendInputRequest, SendSignalRequest, Signal, StartRequest,
    UpdateRequest,
};
use sandyard_wire::routes::{self, header, process as route};
use serde::Serialize;

use crate::call::within;
use crate::client::AgentClient;
use crate::error::{ClientError, Result};
use crate::stream::MessageStream;

/// How to start a command, beyond what it is.
#[derive(Debug, Clone, Default)]
pub struct StartOptions {
    /// How long it may run; the agent then kills it with all its children. `None`: without limit.
    pub timeout: Option<Duration>,
    /// The user that runs it; `None`: the client's user, or the sandbox's default user.
    pub user: Option<String>,
    /// An id under which the agent retains its output and end until [`AgentClient::release_commands`]; `None`: it may forget them.
    pub retain_as: Option<String>,
}

/// Where bytes sent to a command go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputTo {
    /// Its standard input, a pipe.
    Stdin,
    /// Its terminal.
    Pty,
}

/// Events of one command. Dropping it leaves the command running.
#[derive(Debug)]
pub struct ProcessStream {
    messages: MessageStream<EventMessage>,
    pid: u32,
    output_offset: u64,
    begins_at: Option<u64>,
    identity: ProcessIdentity,
}

/// What Sandyard's agent says about a process besides its pid. Other agents leave it empty.
#[derive(Debug, Clone, Default)]
pub struct ProcessIdentity {
    /// An id that no other process ever has, unlike a pid.
    pub unique_id: Option<String>,
    /// Whether it has a terminal.
    pub has_terminal: Option<bool>,
    /// How many bytes of input it had been given when the stream began.
    pub input_offset: Option<u64>,
    /// The directory in which it started.
    pub cwd: Option<String>,
}

impl ProcessStream {
    /// Returns the command's process id inside the sandbox.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns how many bytes the command had written up to the last event, for [`AgentClient::connect`] to go on from.
    pub fn output_offset(&self) -> u64 {
        self.output_offset
    }

    /// Returns what the agent said about the process when the stream began.
    pub fn identity(&self) -> &ProcessIdentity {
        &self.identity
    }

    /// Returns where in all output of the command this stream began; `None`: the agent does not say.
    pub fn begins_at(&self) -> Option<u64> {
        self.begins_at
    }

    /// Waits for output or the end, which is the last event. Loses nothing when cancelled.
    pub async fn next(&mut self) -> Option<Result<ProcessEvent>> {
        loop {
            match self.messages.next().await?.map(|message| message.event) {
                Ok(ProcessEvent::Data(output)) => {
                    self.output_offset = self
                        .output_offset
                        .saturating_add(output.bytes().len() as u64);
                    return Some(Ok(ProcessEvent::Data(output)));
                }
                Ok(ProcessEvent::End(end)) => {
                    self.messages.end();
                    return Some(Ok(ProcessEvent::End(end)));
                }
                Ok(ProcessEvent::Start { .. } | ProcessEvent::Keepalive | ProcessEvent::Other) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Waits for the end and discards the output.
    pub async fn wait(&mut self) -> Result<EndEvent> {
        while let Some(event) = self.next().await {
            if let ProcessEvent::End(end) = event? {
                return Ok(end);
            }
        }
        Err(ClientError::Closed { call: route::START })
    }
}

impl AgentClient {
    /// Starts a command and waits until it runs.
    pub async fn start(
        &self,
        request: &StartRequest,
        options: &StartOptions,
    ) -> Result<ProcessStream> {
        let mut headers = HeaderMap::new();
        if let Some(timeout) = options.timeout {
            let ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
            headers.insert(header::CONNECT_TIMEOUT_MS, HeaderValue::from(ms));
        }
        if let Some(id) = &options.retain_as {
            headers.insert(header::RETAIN, retention_header(id)?);
        }
        match &options.user {
            Some(user) => {
                self.as_user(user)
                    .follow(route::START, request, headers)
                    .await
            }
            None => self.follow(route::START, request, headers).await,
        }
    }

    /// Follows a command's output from now on; of one that has ended, its end.
    pub async fn connect(&self, process: ProcessSelector) -> Result<ProcessStream> {
        self.follow(
            route::CONNECT,
            &ConnectRequest { process },
            HeaderMap::new(),
        )
        .await
    }

    /// Follows a command's output from an earlier [`ProcessStream::output_offset`], or from as far back as the agent
    /// still has it. Zero is the beginning.
    pub async fn connect_from(
        &self,
        process: ProcessSelector,
        output_offset: u64,
    ) -> Result<ProcessStream> {
        let mut headers = HeaderMap::new();
        headers.insert(header::OUTPUT_OFFSET, HeaderValue::from(output_offset));
        self.follow(route::CONNECT, &ConnectRequest { process }, headers)
            .await
    }

    /// Takes a client's command over from another server: output as with [`AgentClient::connect_from`], and no other
    /// input stream writes to the command from now on. A time-out is reported as to the client that started it. Fails with `not_found` when the
    /// pid belongs to a process with another [`ProcessIdentity::unique_id`].
    pub async fn take_over(
        &self,
        pid: u32,
        unique_id: &str,
        output_offset: u64,
    ) -> Result<ProcessStream> {
        let unique_id = HeaderValue::try_from(unique_id).map_err(ClientError::request)?;
        let process = ProcessSelector::Pid(pid);
        let mut headers = HeaderMap::new();
        headers.insert(header::PROCESS, unique_id);
        headers.insert(header::OUTPUT_OFFSET, HeaderValue::from(output_offset));
        headers.insert(header::TAKE_INPUT, HeaderValue::from_static("1"));
        self.follow(route::CONNECT, &ConnectRequest { process }, headers)
            .await
    }

    /// Follows a command that was started with [`StartOptions::retain_as`], from an earlier [`ProcessStream::output_offset`]. The agent
    /// may drop the output before that.
    pub async fn connect_retained(
        &self,
        id: &str,
        pid: u32,
        output_offset: u64,
    ) -> Result<ProcessStream> {
        let mut headers = HeaderMap::new();
        headers.insert(header::OUTPUT_OFFSET, HeaderValue::from(output_offset));
        headers.insert(header::RETAIN, retention_header(id)?);
        let process = ProcessSelector::Pid(pid);
        self.follow(route::CONNECT, &ConnectRequest { process }, headers)
            .await
    }

    /// Lists the commands that were started with [`StartOptions::retain_as`] and not released.
    pub async fn retained_commands(&self) -> Result<Vec<RetainedCommand>> {
        let reply: RetainedCommands = self.get(routes::COMMANDS).await?;
        Ok(reply.commands)
    }

    /// Releases retained commands whose output and end are recorded.
    pub async fn release_commands(&self, ids: Vec<String>) -> Result<()> {
        self.post(routes::RELEASE_COMMANDS, &ReleaseRequest { ids })
            .await
    }

    /// Opens a stream of events and waits for the first.
    async fn follow<Q: Serialize>(
        &self,
        call: &'static str,
        request: &Q,
        headers: HeaderMap,
    ) -> Result<ProcessStream> {
        within(call, self.limits().call_timeout, async {
            let (mut messages, headers) = self.open_stream(call, request, headers).await?;
            let pid = first_event(call, &mut messages).await?;
            let begins_at = number(&headers, header::OUTPUT_OFFSET);
            Ok(ProcessStream {
                messages,
                pid,
                // Without the header the stream begins at the first byte.
                output_offset: begins_at.unwrap_or(0),
                begins_at,
                identity: identity(&headers),
            })
        })
        .await
    }

    /// Lists the running commands.
    pub async fn list(&self) -> Result<Vec<ProcessInfo>> {
        let reply: ListResponse = self.unary(route::LIST, &Empty {}).await?;
        Ok(reply.processes)
    }

    /// Writes to a command, which must take it within the time of a call; [`AgentClient::open_input`] waits longer.
    pub async fn send_input(
        &self,
        process: ProcessSelector,
        to: InputTo,
        bytes: Bytes,
    ) -> Result<()> {
        let input = match to {
            InputTo::Stdin => ProcessInput::Stdin(bytes),
            InputTo::Pty => ProcessInput::Pty(bytes),
        };
        self.order(route::SEND_INPUT, &SendInputRequest { process, input })
            .await
    }

    /// Ends a command's standard input.
    pub async fn close_stdin(&self, process: ProcessSelector) -> Result<()> {
        self.order(route::CLOSE_STDIN, &CloseStdinRequest { process })
            .await
    }

    /// Signals a command.
    pub async fn signal(&self, process: ProcessSelector, signal: Signal) -> Result<()> {
        self.order(route::SEND_SIGNAL, &SendSignalRequest { process, signal })
            .await
    }

    /// Tells a command's terminal its size.
    pub async fn resize(&self, process: ProcessSelector, size: PtySize) -> Result<()> {
        let pty = Some(Pty { size: Some(size) });
        self.order(route::UPDATE, &UpdateRequest { process, pty })
            .await
    }

    /// Makes a unary call whose reply says nothing.
    pub(crate) async fn order<Q: Serialize>(&self, call: &'static str, request: &Q) -> Result<()> {
        let Empty {} = self.unary(call, request).await?;
        Ok(())
    }
}

/// Waits for the event that every stream begins with.
async fn first_event(
    call: &'static str,
    messages: &mut MessageStream<EventMessage>,
) -> Result<u32> {
    while let Some(message) = messages.next().await {
        match message?.event {
            ProcessEvent::Start { pid } => return Ok(pid),
            ProcessEvent::Keepalive | ProcessEvent::Other => {}
            ProcessEvent::Data(_) | ProcessEvent::End(_) => {
                return Err(ClientError::protocol(call, "first event is not the start"));
            }
        }
    }
    Err(ClientError::protocol(call, "stream ends before the start"))
}

fn identity(headers: &HeaderMap) -> ProcessIdentity {
    let unique_id = headers.get(header::PROCESS);
    ProcessIdentity {
        unique_id: unique_id.and_then(|id| id.to_str().ok().map(str::to_owned)),
        has_terminal: number(headers, header::TERMINAL).map(|number| number != 0),
        input_offset: number(headers, header::INPUT_OFFSET),
        cwd: headers
            .get(header::CWD)
            .and_then(|cwd| String::from_utf8(cwd.as_bytes().to_vec()).ok()),
    }
}

fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

fn retention_header(id: &str) -> Result<HeaderValue> {
    HeaderValue::from_str(id).map_err(ClientError::request)
}
