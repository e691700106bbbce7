//! The tool server: a built-in program of a sandbox without a file in it, which costs nothing until it is used.
//!
//! ```text
//!  host ──GET /dial?port=6060──▶ agent ──fork, once──▶ supervisor ──▶ tool server (the default user, in the workspace)
//!                                  └──── one end of a new socket pair, per connection ────▶┘
//!  programs inside ──── 127.0.0.1:6060, which requires the access token ──────────────────▶┘
//! ```
//!
//! The agent does not know what it serves: the binary provides a function. Connections from the host are handed over as
//! descriptors, so that no program inside can forge one. The first dial of its port starts it, and the next dial after its
//! end restarts it. When a sandbox gets another access token, the tool server and all its processes end.

mod hand_over;
mod launch;

use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;

use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;
use tokio::sync::Mutex;

use crate::config::AgentConfig;
use crate::event_loop::WakePair;
use crate::process::ForkedProcess;
use crate::restart_limit::RestartLimit;
use crate::start::Log;
use crate::state::Agent;

/// The default port of the tool server.
pub const TOOLS_PORT: u16 = 6060;

/// A tool server that the agent can start.
#[derive(Debug, Clone, Copy)]
pub struct Tools {
    /// Its port.
    pub port: u16,
    /// Its main function.
    pub run: ToolsProgram,
}

/// Runs in a fork of the agent, as the sandbox's user, in a separate thread. Returns the exit code.
///
/// It may create event loops and threads. Of all signals it can only listen for `SIGCHLD`: `SIGTERM` and others end the
/// process, even if tokio listens for them.
pub type ToolsProgram = fn(ToolsStart) -> i32;

/// The parameters of a tool server.
pub struct ToolsStart {
    /// One end of a pair of `SOCK_SEQPACKET` sockets, non-blocking: each message is one byte and carries one connected stream
    /// socket (`SCM_RIGHTS`), whose peer the host has authorized. It ends when the agent ends.
    pub connections: OwnedFd,
    /// A TCP socket that listens on 127.0.0.1, non-blocking; `None` when another program has the port.
    pub listener: Option<OwnedFd>,
    /// The SHA-256 of the sandbox's access token, which TCP callers must present; `None`: TCP callers are refused.
    pub token_hash: Option<[u8; 32]>,
    /// The environment of a command of this user. It is the environment of the process, too.
    pub env: Vec<(OsString, OsString)>,
    /// The user's home.
    pub home: PathBuf,
    /// The workspace folder, which is also the working directory.
    pub workspace: PathBuf,
    /// The user's name.
    pub user: String,
    /// Its port.
    pub port: u16,
}

impl fmt::Debug for ToolsStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolsStart")
            .field("connections", &self.connections)
            .field("listener", &self.listener)
            .field("user", &self.user)
            .field("home", &self.home)
            .field("workspace", &self.workspace)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

/// The state of the tool server.
#[derive(Debug, Default)]
pub(crate) struct ToolServer {
    setup: OnceCell<Setup>,
    running: RefCell<Option<Rc<Running>>>,
    /// Held while it is being started.
    starting: Mutex<()>,
    restart_limit: RestartLimit,
}

#[derive(Debug)]
struct Setup {
    tools: Tools,
    wake: Option<WakePair>,
    workspace: PathBuf,
    log: Option<PathBuf>,
}

#[derive(Debug)]
struct Running {
    channel: AsyncFd<OwnedFd>,
    process: ForkedProcess,
    log: Log,
    /// Whether the agent ends it.
    is_stopped_by_agent: Cell<bool>,
}

impl ToolServer {
    /// Sets the configuration, when the agent starts.
    pub(crate) fn set_up(&self, config: &AgentConfig, wake: Option<WakePair>) {
        let Some(tools) = config.tools else { return };
        let _ = self.setup.set(Setup {
            tools,
            wake,
            workspace: config.workspace.clone(),
            log: config.start.as_ref().map(|files| files.log("tools")),
        });
    }

    /// Whether a port is the tool server's.
    pub(crate) fn has_port(&self, port: u16) -> bool {
        self.setup
            .get()
            .is_some_and(|setup| setup.tools.port == port)
    }

    /// A connection to the tool server, if it runs.
    async fn connect_if_running(&self) -> Result<Option<UnixStream>, String> {
        let Some(running) = self.running.borrow().clone() else {
            return Ok(None);
        };
        match hand_over::hand_over(&running.channel).await {
            Ok(stream) => Ok(Some(stream)),
            Err(error) if is_server_gone(&error) => {
                // It has ended or hangs: the next dial starts another one.
                self.forget(&running);
                running.process.kill().await;
                Ok(None)
            }
            // Another error, such as a lack of descriptors, is no reason to end its shells.
            Err(error) => Err(format!("the tool server cannot be reached: {error}")),
        }
    }

    /// A connection to the tool server, which is started if it does not run.
    pub(crate) async fn connect(&self, agent: &Rc<Agent>) -> Result<UnixStream, String> {
        for _ in 0..2 {
            if let Some(stream) = self.connect_if_running().await? {
                return Ok(stream);
            }
            // In a separate task, so that the process is registered even if the caller disconnects.
            let started = tokio::task::spawn_local(ensure(agent.clone())).await;
            started.map_err(|error| error.to_string())??;
        }
        let connected = self.connect_if_running().await?;
        connected.ok_or_else(|| "the tool server ended immediately after its start".to_owned())
    }

    /// Ends it with all its processes.
    pub(crate) async fn end(&self) {
        // Waits for a start in progress, to end that one, too.
        let _starting = self.starting.lock().await;
        let running = self.running.borrow_mut().take();
        if let Some(running) = running {
            running.is_stopped_by_agent.set(true);
            running.process.kill().await;
        }
    }

    fn forget(&self, ended: &Rc<Running>) {
        let mut running = self.running.borrow_mut();
        if running
            .as_ref()
            .is_some_and(|current| Rc::ptr_eq(current, ended))
        {
            *running = None;
        }
    }

    fn check_restart_limit(&self) -> Result<(), String> {
        let log = self.setup.get().and_then(|setup| setup.log.as_deref());
        self.restart_limit.check("the tool server", log)
    }
}

/// Whether an error means that the tool server takes no more connections.
fn is_server_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotConnected, TimedOut};
    let kinds = [
        BrokenPipe,
        ConnectionRefused,
        ConnectionReset,
        NotConnected,
        TimedOut,
    ];
    kinds.contains(&error.kind())
}

/// Starts the tool server unless it runs.
async fn ensure(agent: Rc<Agent>) -> Result<(), String> {
    let tools = &agent.tools;
    let _starting = tools.starting.lock().await;
    if tools.running.borrow().is_some() {
        return Ok(());
    }
    tools.check_restart_limit()?;
    let running = Rc::new(tools.launch(&agent).await?);
    *tools.running.borrow_mut() = Some(running.clone());
    tokio::task::spawn_local(watch(agent.clone(), running));
    Ok(())
}

/// Waits for the tool server's end.
async fn watch(agent: Rc<Agent>, running: Rc<Running>) {
    let how = running.process.ended().await;
    agent.tools.forget(&running);
    if !running.is_stopped_by_agent.get() {
        agent.tools.restart_limit.note_exit();
    }
    running.log.note(&format!("the tool server ended: {how}"));
}
