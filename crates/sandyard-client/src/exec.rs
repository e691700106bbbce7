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

mod connect;
mod input;
mod output;

use std::collections::BTreeMap;
use std::fmt;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde::{Deserialize, Serialize};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::Result;
use crate::client::Client;
use crate::error::ClientError;
use crate::model::Command;

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

impl Client {
    /// Starts a command in a sandbox and stays connected to it. Never repeated by itself.
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
        Ok(Exec {
            input: ExecInput::new(sink),
            output: ExecOutput::new(source),
        })
    }
}

fn broken(error: tungstenite::Error) -> ClientError {
    ClientError::Connection {
        operation: OPERATION,
        source: Box::new(error),
    }
}
