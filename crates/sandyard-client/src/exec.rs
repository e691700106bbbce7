//! A command with its input and output as they happen, over WebSocket.
//!
//! ```text
//!  here                                   server
//!  {command, tty, cwd, …}          ──▶
//!                                  ◀──   {"type":"start","pid"}
//!  bytes: standard input           ──▶
//!  {"type":"resize"|"signal"|"eof"}──▶
//!                                  ◀──   1 byte (1 stdout, 2 stderr) + bytes
//!                                  ◀──   {"type":"exit","exit_code"} or {"type":"error","code","detail"}
//! ```
//!
//! A connection that is lost after the start is opened again, to the process: see `reconnect`. Both directions go on where they
//! were cut: output by the bytes received so far, input by the bytes the process has taken.

mod connect;
mod input;
mod message;
mod output;
mod reconnect;
mod shared;

use std::collections::BTreeMap;
use std::fmt;
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
use shared::Shared;

pub use input::ExecInput;
pub use output::{ExecEvent, ExecOutput};

const OPERATION: &str = "running a command";

type Socket = WebSocketStream<connect::Connection>;
type Sink = SplitSink<Socket, Message>;
type Source = SplitStream<Socket>;

/// Columns and rows of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
}

/// What to run, and how.
#[derive(Clone, Serialize)]
pub struct ExecRequest {
    /// What.
    #[serde(flatten)]
    pub command: Command,
    /// A terminal to run in; none: with pipes.
    pub tty: Option<TerminalSize>,
    /// Where; none: the user's home.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Variables on top of the sandbox's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// As whom; none: the sandbox's user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// How many seconds it may take; none: any time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
}

impl ExecRequest {
    /// A command with nothing special about it.
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

impl fmt::Debug for ExecRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecRequest")
            .field("tty", &self.tty)
            .finish_non_exhaustive()
    }
}

/// A command under way.
#[derive(Debug)]
pub struct Exec {
    /// The way in.
    pub input: ExecInput,
    /// The way out.
    pub output: ExecOutput,
}

/// A process that ran already.
#[derive(Debug)]
pub struct AttachedProcess {
    /// Its input and output.
    pub exec: Exec,
    /// Whether it has a terminal.
    pub has_terminal: bool,
}

impl Client {
    /// Attaches to a process of a sandbox: first its output that is still kept, then what it does from now on. It runs on when the
    /// client goes. One that ended within the last minutes gives what is left of its output, and its exit code.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached, or knows no such process.
    pub async fn attach(&self, sandbox: &str, pid: u32) -> Result<AttachedProcess> {
        let target = Target {
            client: self.clone(),
            sandbox: sandbox.to_owned(),
            kill_on_disconnect: false,
        };
        let attached = target.attach(pid).await?;
        let has_terminal = attached.start.tty.unwrap_or(false);
        let input_offset = attached.start.input_offset.unwrap_or(0);
        let shared = Arc::new(Shared::new(attached.sink, input_offset));
        let output = ExecOutput::new(attached.source, Arc::clone(&shared), target);
        Ok(AttachedProcess {
            exec: Exec {
                input: ExecInput::new(shared),
                output: output.started(attached.start),
            },
            has_terminal,
        })
    }

    /// Starts a command in a sandbox and stays connected to it. Never started a second time by itself.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached or refuses the connection; a command that cannot be started is the first thing
    /// that [`ExecOutput::next`] gives.
    pub async fn exec(&self, sandbox: &str, request: &ExecRequest) -> Result<Exec> {
        let socket = connect::connect(self, self.route(["sandboxes", sandbox, "exec"])).await?;
        let (mut sink, source) = socket.split();
        let first = serde_json::to_string(request).map_err(|error| ClientError::Protocol {
            operation: OPERATION,
            problem: error.to_string(),
        })?;
        sink.send(Message::text(first)).await.map_err(broken)?;
        let target = Target {
            client: self.clone(),
            sandbox: sandbox.to_owned(),
            kill_on_disconnect: true,
        };
        let shared = Arc::new(Shared::new(sink, 0));
        Ok(Exec {
            output: ExecOutput::new(source, Arc::clone(&shared), target),
            input: ExecInput::new(shared),
        })
    }
}

fn broken(error: tungstenite::Error) -> ClientError {
    use tungstenite::error::ProtocolError::ResetWithoutClosingHandshake;
    match error {
        // What a server that was killed looks like; the library's words for it help nobody.
        tungstenite::Error::Protocol(ResetWithoutClosingHandshake)
        | tungstenite::Error::ConnectionClosed
        | tungstenite::Error::AlreadyClosed => closed(),
        tungstenite::Error::Io(error) => failed(error),
        other => failed(other),
    }
}

/// The other side went.
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
