//! Commands with streamed input and output, over WebSocket.
//!
//! ```text
//!  client                                 server
//!  {command, tty, cwd, …}          ──▶
//!                                  ◀──   {"type":"start","pid"}
//!  bytes: standard input           ──▶
//!  {"type":"resize"|"signal"|"eof"}──▶
//!                                  ◀──   1 byte (1 stdout, 2 stderr) + bytes
//!                                  ◀──   {"type":"exit","exit_code"} or {"type":"error","code","detail"}
//! ```
//!
//! A connection that is lost after the start is restored by attaching to the process: see `reconnect`. Both directions continue
//! where they were cut off: output at the bytes received so far, input at the bytes that the process has read.

mod connect;
mod input;
mod message;
mod output;
mod reconnect;
mod session;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde::{Deserialize, Serialize};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::Result;
use crate::client::Client;
use crate::error::ClientError;
use crate::model::Command;

use reconnect::Target;
use session::Session;

pub use input::ExecInput;
pub use output::{ExecEvent, ExecOutput};

const OPERATION: &str = "running a command";

type Socket = WebSocketStream<connect::Connection>;
type Sink = SplitSink<Socket, Message>;
type Source = SplitStream<Socket>;

/// Size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    /// Number of columns.
    pub cols: u16,
    /// Number of rows.
    pub rows: u16,
}

/// Command to run over WebSocket.
#[derive(Clone, Serialize)]
pub struct ExecRequest {
    /// Command to run.
    #[serde(flatten)]
    pub command: Command,
    /// Size of the terminal to run in. `None`: run with pipes.
    pub tty: Option<TerminalSize>,
    /// Working directory. `None`: the user's home directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Environment variables added to the sandbox's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// User inside the sandbox. `None`: the sandbox's default user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Maximum run time in seconds. `None`: unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
}

impl ExecRequest {
    /// Creates a request with default settings.
    pub fn new(command: Command) -> Self {
        Self {
            command,
            tty: None,
            cwd: None,
            env: BTreeMap::new(),
            user: None,
            timeout: None,
        }
    }
}

sandyard_core::debug_fields!(ExecRequest: tty);

/// Running command.
#[derive(Debug)]
pub struct Exec {
    /// Standard input, signals and terminal size.
    pub input: ExecInput,
    /// Output and exit code.
    pub output: ExecOutput,
}

/// Process that was running before the client attached.
#[derive(Debug)]
pub struct AttachedProcess {
    /// Input and output of the process.
    pub exec: Exec,
    /// Whether the process has a terminal.
    pub has_terminal: bool,
}

impl Client {
    /// Attaches to a process of a sandbox. The output that is still kept comes first. The process keeps running when
    /// the client disconnects. A process that ended within the last minutes returns the rest of its output and its exit
    /// code.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached, or does not know the process.
    pub async fn attach(&self, sandbox: &str, pid: u32) -> Result<AttachedProcess> {
        let target = Target {
            client: self.clone(),
            sandbox: sandbox.to_owned(),
            kill_on_disconnect: false,
        };
        let attached = target.attach(pid).await?;
        let has_terminal = attached.start.tty.unwrap_or(false);
        let input_offset = attached.start.input_offset.unwrap_or(0);
        let session = Arc::new(Session::new(attached.sink, input_offset));
        let output = ExecOutput::new(attached.source, Arc::clone(&session), target);
        Ok(AttachedProcess {
            exec: Exec {
                input: ExecInput::new(session),
                output: output.with_start(attached.start),
            },
            has_terminal,
        })
    }

    /// Starts a command in a sandbox and stays connected to it. The client never starts it a second time.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached or rejects the connection. [`ExecOutput::next`] returns the error of a command
    /// that cannot be started.
    pub async fn exec(&self, sandbox: &str, request: &ExecRequest) -> Result<Exec> {
        let socket = connect::connect(self, self.route(["sandboxes", sandbox, "exec"])).await?;
        let (mut sink, source) = socket.split();
        let first = serde_json::to_string(request).map_err(|error| ClientError::Protocol {
            operation: OPERATION,
            problem: error.to_string(),
        })?;
        sink.send(Message::text(first))
            .await
            .map_err(connection_error)?;
        let target = Target {
            client: self.clone(),
            sandbox: sandbox.to_owned(),
            kill_on_disconnect: true,
        };
        let session = Arc::new(Session::new(sink, 0));
        Ok(Exec {
            output: ExecOutput::new(source, Arc::clone(&session), target),
            input: ExecInput::new(session),
        })
    }
}

fn connection_error(error: tungstenite::Error) -> ClientError {
    use tungstenite::error::ProtocolError::ResetWithoutClosingHandshake;
    match error {
        // A killed server causes these errors; the texts of the library would not help a user.
        tungstenite::Error::Protocol(ResetWithoutClosingHandshake)
        | tungstenite::Error::ConnectionClosed
        | tungstenite::Error::AlreadyClosed => closed(),
        tungstenite::Error::Io(error) => failed(error),
        other => failed(other),
    }
}

/// Error for a connection that the server closed.
fn closed() -> ClientError {
    failed(io::Error::new(
        io::ErrorKind::ConnectionReset,
        "the server closed the connection",
    ))
}

fn failed(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ClientError {
    ClientError::Connection {
        operation: OPERATION,
        source: source.into(),
    }
}
