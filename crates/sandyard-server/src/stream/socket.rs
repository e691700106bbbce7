//! Connects a command with a client over WebSocket, until one of them ends.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use sandyard_agent_client::wire::event::{Output, ProcessEvent};
use sandyard_agent_client::{AgentClient, ClientError, InputStream, InputTo, wire};
use sandyard_core::ErrorKind;
use sandyard_service::{ServiceError, ServiceResult};
use tokio::sync::{Notify, mpsc};

use super::child::Child;
use super::control::{Control, messages};
use super::sse;
use crate::listen::Shutdown;

/// Largest message of a client, in bytes.
const MAX_MESSAGE: usize = 1 << 20;
/// Pause between two pings.
const PING_EVERY: Duration = Duration::from_secs(20);
/// Longest wait for a client that does not read.
const SEND_TIMEOUT: Duration = Duration::from_secs(300);

/// How output is sent to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// After a byte that names the stream: 1 standard output, 2 standard error.
    Numbered,
    /// Without a prefix, for a terminal.
    Plain,
}

/// Whether the command has a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terminal(pub(super) bool);

/// Bounds the messages of a client.
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
    shutdown: Shutdown,
) {
    let (mut sink, source) = socket.split();
    let agent = child.agent().clone();
    let to = if is_terminal {
        InputTo::Pty
    } else {
        InputTo::Stdin
    };
    let (error_sender, mut errors) = mpsc::channel(1);
    let waker = child.input_waker();
    let arrived = Arc::new(Notify::new());
    let input = Input {
        arrived: Arc::clone(&arrived),
        agent,
        selector: child.selector(),
        to,
        stream: None,
        errors: error_sender,
    };
    if send(&mut sink, Message::from(messages::start(&child)))
        .await
        .is_err()
    {
        return;
    }
    let last = tokio::select! {
        last = send_output(&mut sink, &mut child, framing, &mut errors) => last,
        () = input.forward(source) => None,
        () = waker.wake_on(&arrived) => None,
        () = shutdown.wait() => {
            child.detach();
            let text = format!("the server shuts down; process {} continues", child.pid());
            Some(messages::error(&sse::shutting_down(text)))
        }
    };
    if let Some(last) = last {
        let code = if shutdown.has_begun() {
            close_code::AWAY
        } else {
            close_code::NORMAL
        };
        close(&mut sink, last, code).await;
    }
}

/// Sends an error and closes the connection.
pub(super) async fn refuse(mut socket: WebSocket, error: &ServiceError) {
    let text = messages::error(error);
    let _ = tokio::time::timeout(SEND_TIMEOUT, async {
        socket.send(Message::from(text)).await?;
        socket.send(close_message(close_code::NORMAL)).await
    })
    .await;
}

async fn close(sink: &mut SplitSink<WebSocket, Message>, last: String, code: u16) {
    if send(sink, Message::from(last)).await.is_ok() {
        let _ = send(sink, close_message(code)).await;
        let _ = tokio::time::timeout(SEND_TIMEOUT, sink.close()).await;
    }
}

fn close_message(code: u16) -> Message {
    Message::Close(Some(CloseFrame {
        code,
        reason: "".into(),
    }))
}

/// Sends a message; waits for a slow client, within a limit.
async fn send(
    sink: &mut SplitSink<WebSocket, Message>,
    message: Message,
) -> Result<(), axum::Error> {
    match tokio::time::timeout(SEND_TIMEOUT, sink.send(message)).await {
        Ok(result) => result,
        Err(elapsed) => Err(axum::Error::new(elapsed)),
    }
}

/// Sends output until the command ends; returns the last message, or none when the client has disconnected.
async fn send_output(
    sink: &mut SplitSink<WebSocket, Message>,
    child: &mut Child,
    framing: Framing,
    errors: &mut mpsc::Receiver<String>,
) -> Option<String> {
    let mut pings = tokio::time::interval(PING_EVERY);
    loop {
        let message = tokio::select! {
            event = child.next() => match event {
                Some(Ok(ProcessEvent::Data(output))) => Message::Binary(frame(&output, framing)),
                Some(Ok(ProcessEvent::End(end))) => return Some(messages::exit(end.shell_code())),
                Some(Ok(_)) => continue,
                Some(Err(error)) => return Some(messages::error(&error.into())),
                None => {
                    let call = wire::routes::process::START;
                    return Some(messages::error(&ClientError::Closed { call }.into()));
                }
            },
            Some(error) = errors.recv() => Message::from(error),
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

/// The input of a client for a command.
struct Input {
    /// Notified of every message before it is forwarded.
    arrived: Arc<Notify>,
    agent: AgentClient,
    selector: wire::process::ProcessSelector,
    to: InputTo,
    /// Opened for the first bytes.
    stream: Option<InputStream>,
    /// Errors to send to the client.
    errors: mpsc::Sender<String>,
}

impl Input {
    /// Forwards input until the client disconnects. An invalid message is answered with an error and has no other effect.
    async fn forward(mut self, mut source: SplitStream<WebSocket>) {
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
            // Input for a command that has just ended is not an error: its end is being sent to the client.
            let is_ended = |error: &ServiceError| {
                matches!(error.kind, ErrorKind::FileNotFound | ErrorKind::Conflict)
            };
            if let Err(error) = done
                && !is_ended(&error)
            {
                // A failure means that the sending half has ended.
                let _ = self.errors.send(messages::error(&error)).await;
            }
        }
    }

    async fn write(&mut self, bytes: Bytes) -> ServiceResult<()> {
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

    async fn control(&mut self, text: &str) -> ServiceResult<()> {
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

    /// Ends the input after the command has got all of it.
    async fn end(&mut self) -> ServiceResult<()> {
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
