//! What commands and terminals over WebSocket have in common: a child, its bytes, and who goes first.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use sandyard_agent_client::wire::event::{Output, ProcessEvent};
use sandyard_agent_client::{AgentClient, ClientError, InputStream, InputTo, wire};
use sandyard_core::ErrorKind;
use sandyard_service::ServiceError;
use tokio::sync::{Notify, mpsc};

use super::child::Child;
use super::control::{Control, say};
use super::sse;
use crate::listen::Ending;

/// Largest message a client may send.
const MAX_MESSAGE: usize = 1 << 20;
/// How often a client is asked whether it is there.
const PING_EVERY: Duration = Duration::from_secs(20);
/// How long a client may take nothing of what is sent to it.
const STALL: Duration = Duration::from_secs(300);

/// How a command's bytes go to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// A byte says from where: 1 output, 2 errors.
    Numbered,
    /// As they are, for a terminal.
    Plain,
}

/// Whether the command has a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terminal(pub(super) bool);

/// Bounds what a client may send.
pub(super) fn bounded(upgrade: WebSocketUpgrade) -> WebSocketUpgrade {
    upgrade
        .max_message_size(MAX_MESSAGE)
        .max_frame_size(MAX_MESSAGE)
}

/// Connects a child with a client until one of them, or the server, ends.
pub(super) async fn attach(
    socket: WebSocket,
    mut child: Child,
    framing: Framing,
    Terminal(is_terminal): Terminal,
    ending: Ending,
) {
    let (mut sink, source) = socket.split();
    let agent = child.agent().clone();
    let to = if is_terminal {
        InputTo::Pty
    } else {
        InputTo::Stdin
    };
    let (notices, mut noticed) = mpsc::channel(1);
    let waker = child.input_waker();
    let arrived = Arc::new(Notify::new());
    let input = Input {
        arrived: Arc::clone(&arrived),
        agent,
        selector: child.selector(),
        to,
        stream: None,
        notices,
    };
    if send(&mut sink, Message::from(say::start(&child)))
        .await
        .is_err()
    {
        return;
    }
    let last = tokio::select! {
        last = pass_output(&mut sink, &mut child, framing, &mut noticed) => last,
        () = input.pass(source) => None,
        () = waker.wake_on(&arrived) => None,
        () = ending.wait() => {
            child.leave();
            let text = format!("the server ends; process {} runs on", child.pid());
            Some(say::error(&sse::server_ends(text)))
        }
    };
    if let Some(last) = last {
        let code = if ending.has_begun() {
            close_code::AWAY
        } else {
            close_code::NORMAL
        };
        close(&mut sink, last, code).await;
    }
}

/// Says one last thing.
pub(super) async fn refuse(mut socket: WebSocket, error: &ServiceError) {
    let text = say::error(error);
    let _ = tokio::time::timeout(STALL, async {
        socket.send(Message::from(text)).await?;
        socket.send(farewell(close_code::NORMAL)).await
    })
    .await;
}

async fn close(sink: &mut SplitSink<WebSocket, Message>, last: String, code: u16) {
    if send(sink, Message::from(last)).await.is_ok() {
        let _ = send(sink, farewell(code)).await;
        let _ = tokio::time::timeout(STALL, sink.close()).await;
    }
}

fn farewell(code: u16) -> Message {
    Message::Close(Some(CloseFrame {
        code,
        reason: "".into(),
    }))
}

/// Sends, waiting for a slow client but not for ever.
async fn send(
    sink: &mut SplitSink<WebSocket, Message>,
    message: Message,
) -> Result<(), axum::Error> {
    match tokio::time::timeout(STALL, sink.send(message)).await {
        Ok(result) => result,
        Err(late) => Err(axum::Error::new(late)),
    }
}

/// Passes output on until the command ends; returns the last message, or none when the client is gone.
async fn pass_output(
    sink: &mut SplitSink<WebSocket, Message>,
    child: &mut Child,
    framing: Framing,
    notices: &mut mpsc::Receiver<String>,
) -> Option<String> {
    let mut pings = tokio::time::interval(PING_EVERY);
    loop {
        let message = tokio::select! {
            event = child.next() => match event {
                Some(Ok(ProcessEvent::Data(output))) => Message::Binary(frame(&output, framing)),
                Some(Ok(ProcessEvent::End(end))) => return Some(say::exit(end.shell_code())),
                Some(Ok(_)) => continue,
                Some(Err(error)) => return Some(say::error(&error.into())),
                None => {
                    let call = wire::routes::process::START;
                    return Some(say::error(&ClientError::Closed { call }.into()));
                }
            },
            Some(notice) = notices.recv() => Message::from(notice),
            _ = pings.tick() => Message::Ping(Bytes::new()),
        };
        send(sink, message).await.ok()?;
    }
}

fn frame(output: &Output, framing: Framing) -> Bytes {
    let bytes = output.bytes();
    match framing {
        Framing::Plain => bytes.clone(),
        Framing::Numbered => {
            let number = match output {
                Output::Stderr(_) => 2,
                Output::Stdout(_) | Output::Pty(_) => 1,
            };
            let mut framed = Vec::with_capacity(bytes.len() + 1);
            framed.push(number);
            framed.extend_from_slice(bytes);
            framed.into()
        }
    }
}

/// What a client sends to a command.
struct Input {
    /// Told of every message, before it is passed on.
    arrived: Arc<Notify>,
    agent: AgentClient,
    selector: wire::process::ProcessSelector,
    to: InputTo,
    /// Opened with the first bytes.
    stream: Option<InputStream>,
    notices: mpsc::Sender<String>,
}

impl Input {
    /// Passes input on until the client is gone. A mistake is told and changes nothing.
    async fn pass(mut self, mut source: SplitStream<WebSocket>) {
        while let Some(Ok(message)) = source.next().await {
            if matches!(message, Message::Binary(_) | Message::Text(_)) {
                self.arrived.notify_one();
            }
            let done = match message {
                Message::Binary(bytes) => self.write(bytes).await,
                Message::Text(text) => self.control(&text).await,
                Message::Close(_) => return,
                Message::Ping(_) | Message::Pong(_) => Ok(()),
            };
            // Input for a command that has just ended is no mistake; its end is on its way to the client.
            let is_ended = |error: &ServiceError| {
                matches!(error.kind, ErrorKind::FileNotFound | ErrorKind::Conflict)
            };
            if let Err(error) = done
                && !is_ended(&error)
            {
                // Nobody to tell: the other half has ended.
                let _ = self.notices.send(say::error(&error)).await;
            }
        }
    }

    async fn write(&mut self, bytes: Bytes) -> Result<(), ServiceError> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => self.stream.insert(
                self.agent
                    .open_input(self.selector.clone(), self.to)
                    .await?,
            ),
        };
        let sent = stream.send(bytes).await;
        if sent.is_err() {
            self.stream = None;
        }
        Ok(sent?)
    }

    async fn control(&mut self, text: &str) -> Result<(), ServiceError> {
        let control: Control = serde_json::from_str(text).map_err(|error| {
            ServiceError::new(
                ErrorKind::Invalid,
                format!("cannot read the message: {error}"),
            )
        })?;
        match control {
            Control::Resize { size } => {
                let size = size.checked()?.to_wire();
                Ok(self.agent.resize(self.selector.clone(), size).await?)
            }
            Control::Signal { signal } => {
                let signal = signal.to_wire()?;
                Ok(self.agent.signal(self.selector.clone(), signal).await?)
            }
            Control::Eof => self.end().await,
        }
    }

    /// Ends the input, once the command was given all of it.
    async fn end(&mut self) -> Result<(), ServiceError> {
        if let Some(stream) = self.stream.take() {
            stream.finish().await?;
        }
        match self.to {
            InputTo::Stdin => Ok(self.agent.close_stdin(self.selector.clone()).await?),
            // A terminal's input ends with a character (termios(3), VEOF).
            InputTo::Pty => {
                let eof = Bytes::from_static(b"\x04");
                let sent = self.agent.send_input(self.selector.clone(), self.to, eof);
                Ok(sent.await?)
            }
        }
    }
}
