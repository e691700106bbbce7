//! The tool server: a program of ours that a sandbox has without a file of it, and that costs nothing until it is used.
//!
//! ```text
//!  host ──GET /dial?port=6060──▶ agent ──fork, once──▶ minder ──▶ tool server (the default user, in the workspace)
//!                                  └──── one end of a new socket pair, per connection ────▶┘
//!  programs inside ──── 127.0.0.1:6060, where the access token is asked for ──────────────▶┘
//! ```
//!
//! What it serves is not the agent's business: the binary gives a function. Connections from the host are handed over as
//! descriptors, so that nobody inside can forge one. It is started by the first dial that finds nobody on its port, and
//! again by the next one after its death. A sandbox that gets another access token loses it with all it runs.

mod begin;
mod hand_over;

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
use crate::deaths::Deaths;
use crate::event_loop::WakePair;
use crate::process::OwnProcess;
use crate::start::Log;
use crate::state::Agent;

/// Where the tool server is found unless something else was said.
pub const TOOLS_PORT: u16 = 6060;

/// A tool server that the agent can start.
#[derive(Debug, Clone, Copy)]
pub struct Tools {
    /// Where it is found.
    pub port: u16,
    /// The program.
    pub run: ToolsProgram,
}

/// Runs in a fork of the agent, as the sandbox's user, in a thread of its own. Returns the exit code.
///
/// It may make event loops and threads as it likes. Of signals, only deaths of children can be listened for: `SIGTERM` and
/// the like end the process, whatever tokio says.
pub type ToolsProgram = fn(ToolsStart) -> i32;

/// What a tool server starts with.
pub struct ToolsStart {
    /// One end of a pair of `SOCK_SEQPACKET` sockets, non-blocking: each message is one byte and carries one connected stream
    /// socket (`SCM_RIGHTS`), whose peer the host has let in. Its end is the agent's.
    pub connections: OwnedFd,
    /// A TCP socket that listens on 127.0.0.1, non-blocking; none when somebody else has the port.
    pub listener: Option<OwnedFd>,
    /// The SHA-256 of the sandbox's access token, which callers by TCP have to show; none: nobody gets in by TCP.
    pub token_hash: Option<[u8; 32]>,
    /// The variables that a command of this user gets. They are those of the process too.
    pub env: Vec<(OsString, OsString)>,
    /// The user's home.
    pub home: PathBuf,
    /// Where projects are; also the working directory.
    pub workspace: PathBuf,
    /// The user's name.
    pub user: String,
    /// Where the tool server is found.
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

/// The tool server as the agent knows it.
#[derive(Debug, Default)]
pub(crate) struct Toolbox {
    setup: OnceCell<Setup>,
    running: RefCell<Option<Rc<Running>>>,
    /// Held by the one who starts it.
    starting: Mutex<()>,
    deaths: Deaths,
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
    process: OwnProcess,
    log: Log,
    /// Whether we end it ourselves.
    is_unwanted: Cell<bool>,
}

impl Toolbox {
    /// Takes what there is to know at the agent's birth.
    pub(crate) fn set_up(&self, config: &AgentConfig, wake: Option<WakePair>) {
        let Some(tools) = config.tools else { return };
        let _ = self.setup.set(Setup {
            tools,
            wake,
            workspace: config.workspace.clone(),
            log: config.start.as_ref().map(|files| files.log("tools")),
        });
    }

    /// Whether that is where the tool server is found.
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
            Err(error) if is_its_end(&error) => {
                // Dead, or as good as dead: whoever comes next starts another one.
                self.forget(&running);
                running.process.kill().await;
                Ok(None)
            }
            // Want of descriptors, say, is no reason to end its shells.
            Err(error) => Err(format!("the tool server cannot be reached: {error}")),
        }
    }

    /// A connection to the tool server, which is started if it does not run.
    pub(crate) async fn connect(&self, agent: &Rc<Agent>) -> Result<UnixStream, String> {
        for _ in 0..2 {
            if let Some(stream) = self.connect_if_running().await? {
                return Ok(stream);
            }
            // In a task of its own: whoever asked may leave, and a process that nobody knows of must not stay.
            let started = tokio::task::spawn_local(ensure(agent.clone())).await;
            started.map_err(|error| error.to_string())??;
        }
        let connected = self.connect_if_running().await?;
        connected.ok_or_else(|| "the tool server ended as soon as it was started".to_owned())
    }

    /// Ends it with all it has started.
    pub(crate) async fn end(&self) {
        // One that is being started is to be ended too.
        let _starting = self.starting.lock().await;
        let running = self.running.borrow_mut().take();
        if let Some(running) = running {
            running.is_unwanted.set(true);
            running.process.kill().await;
        }
    }

    fn forget(&self, gone: &Rc<Running>) {
        let mut running = self.running.borrow_mut();
        if running
            .as_ref()
            .is_some_and(|known| Rc::ptr_eq(known, gone))
        {
            *running = None;
        }
    }

    fn check_deaths(&self) -> Result<(), String> {
        let log = self.setup.get().and_then(|setup| setup.log.as_deref());
        self.deaths.check("the tool server", log)
    }
}

/// Whether an error says that nobody takes connections any more.
fn is_its_end(error: &io::Error) -> bool {
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

/// Starts it unless it runs.
async fn ensure(agent: Rc<Agent>) -> Result<(), String> {
    let tools = &agent.tools;
    let _starting = tools.starting.lock().await;
    if tools.running.borrow().is_some() {
        return Ok(());
    }
    tools.check_deaths()?;
    let running = Rc::new(tools.begin(&agent).await?);
    *tools.running.borrow_mut() = Some(running.clone());
    tokio::task::spawn_local(watch(agent.clone(), running));
    Ok(())
}

/// Waits for its end.
async fn watch(agent: Rc<Agent>, running: Rc<Running>) {
    let how = running.process.ended().await;
    agent.tools.forget(&running);
    if !running.is_unwanted.get() {
        agent.tools.deaths.note();
    }
    running.log.note(&format!("the tool server ended: {how}"));
}
