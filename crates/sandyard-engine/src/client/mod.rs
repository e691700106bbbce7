//! The client of the launcher: async, without privilege, safe to share.

mod connection;
mod replace;
mod resources;
mod sampler;
mod start;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sandyard_agent_client::{AgentClient, Endpoint};
use sandyard_core::SandboxId;
use sandyard_template::{Diff, Template};

use crate::error::{EngineError, ErrorKind, Result};
use crate::layout::DataDir;
use crate::protocol::{GENERATION, Hello, Reply, Request};
use crate::spec::{ForkSpec, SandboxInfo, SandboxSpec, SandboxStats};
use crate::steps::Fault;
use connection::Connection;
pub use sampler::{Sample, Sampler};

/// Idle connections kept for the next request. Each costs the launcher a small process.
const MAX_IDLE: usize = 16;
const CREATES_PER_PROCESSOR: usize = 2;
/// How often a request is repeated after its launcher died.
const RETRIES: usize = 3;

/// How to reach, and if need be start, the launcher.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// The data directory.
    pub data_dir: PathBuf,
    /// The program to start as launcher when none runs, with its first arguments. `--data-dir` and the rest are added.
    pub launcher: Option<Vec<String>>,
    /// How long a started launcher stays without connections.
    pub idle_exit: Duration,
    /// Start launchers that honour faults. For tests.
    pub allow_faults: bool,
    /// Port of the sandboxes' tool server; `None`: the default.
    pub tools_port: Option<u16>,
    /// Memory that a started launcher keeps free for the host, in bytes; `None`: a share of the host's memory.
    pub memory_reserve: Option<u64>,
    /// Replace a running launcher of another build, tools port or memory reserve.
    pub replaces_other: bool,
}

impl EngineConfig {
    /// Uses this very program as launcher.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        let own = std::env::current_exe().map_or_else(
            |_| "/proc/self/exe".to_owned(),
            |path| path.display().to_string(),
        );
        Self {
            data_dir: data_dir.into(),
            launcher: Some(vec![own, "launcher".to_owned()]),
            idle_exit: Duration::from_secs(60),
            allow_faults: false,
            tools_port: None,
            memory_reserve: None,
            replaces_other: false,
        }
    }
}

/// The engine. Clones share connections.
#[derive(Clone, Debug)]
pub struct Engine {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: EngineConfig,
    data: DataDir,
    idle: Mutex<Vec<Connection>>,
    /// One start at a time from this process. The launcher's lock keeps other processes apart.
    starting: tokio::sync::Mutex<()>,
    /// Slots for creates: more than a few for each processor only slow each other down.
    creating: tokio::sync::Semaphore,
}

/// Keeps an ephemeral sandbox alive. The sandbox is deleted when this is dropped or this process ends in any way.
#[derive(Debug)]
pub struct Lease {
    _connection: Connection,
}

impl Engine {
    /// Connects to the launcher, starting one if none runs.
    pub async fn connect(config: EngineConfig) -> Result<Self> {
        let data = DataDir::new(&config.data_dir);
        let idle = Mutex::new(Vec::new());
        let engine = Self {
            shared: Arc::new(Shared {
                config,
                data,
                idle,
                starting: tokio::sync::Mutex::new(()),
                creating: tokio::sync::Semaphore::new(creates_at_once()),
            }),
        };
        let mut hello = engine.hello().await?;
        let config = &engine.shared.config;
        if config.replaces_other
            && config.launcher.is_some()
            && let Some(why) = replace::difference(config, &hello)
        {
            hello = engine.replace(hello, &why).await?;
        }
        if hello.generation != GENERATION {
            let message = format!(
                "the running launcher has version {} and uses another protocol",
                hello.version
            );
            return Err(
                EngineError::new(ErrorKind::Unavailable, message).hint(format!(
                    "end it (process {}); running sandboxes are not affected",
                    hello.launcher_pid
                )),
            );
        }
        Ok(engine)
    }

    /// Describes the running launcher.
    pub async fn hello(&self) -> Result<Hello> {
        match self.ask(&Request::Hello).await? {
            Reply::Hello(hello) => Ok(hello),
            other => Err(unexpected(&other)),
        }
    }

    /// Makes a sandbox that lives until it is deleted.
    pub async fn create(&self, spec: &SandboxSpec) -> Result<SandboxInfo> {
        let spec = SandboxSpec {
            ephemeral: false,
            ..spec.clone()
        };
        let _slot = self.shared.creating.acquire().await;
        self.ask_sandbox(&Request::Create {
            spec: Box::new(spec),
            fault: None,
        })
        .await
    }

    /// Makes a sandbox that lives as long as the lease.
    pub async fn create_ephemeral(&self, spec: &SandboxSpec) -> Result<(SandboxInfo, Lease)> {
        let spec = SandboxSpec {
            ephemeral: true,
            ..spec.clone()
        };
        let mut connection = self.dial().await?;
        let reply = connection
            .ask(&Request::Create {
                spec: Box::new(spec),
                fault: None,
            })
            .await?;
        Ok((
            sandbox(reply?)?,
            Lease {
                _connection: connection,
            },
        ))
    }

    /// Makes a sandbox with a fault. For tests.
    pub async fn create_with_fault(&self, spec: &SandboxSpec, fault: Fault) -> Result<SandboxInfo> {
        let mut connection = self.dial().await?;
        sandbox(
            connection
                .ask(&Request::Create {
                    spec: Box::new(spec.clone()),
                    fault: Some(fault),
                })
                .await??,
        )
    }

    /// Describes one sandbox.
    pub async fn inspect(&self, id: &SandboxId) -> Result<SandboxInfo> {
        self.ask_sandbox(&Request::Inspect { id: id.clone() }).await
    }

    /// Lists all sandboxes, oldest first.
    pub async fn list(&self) -> Result<Vec<SandboxInfo>> {
        match self.ask(&Request::List).await? {
            Reply::Sandboxes(infos) => Ok(infos),
            other => Err(unexpected(&other)),
        }
    }

    /// Freezes a sandbox with its memory kept.
    pub async fn pause(&self, id: &SandboxId) -> Result<SandboxInfo> {
        self.ask_sandbox(&Request::Pause { id: id.clone() }).await
    }

    /// Thaws a frozen sandbox.
    pub async fn resume(&self, id: &SandboxId) -> Result<SandboxInfo> {
        self.ask_sandbox(&Request::Resume { id: id.clone() }).await
    }

    /// Ends a sandbox's processes and keeps its files.
    pub async fn stop(&self, id: &SandboxId) -> Result<SandboxInfo> {
        self.ask_sandbox(&Request::Stop { id: id.clone() }).await
    }

    /// Starts a stopped sandbox again.
    pub async fn start(&self, id: &SandboxId) -> Result<SandboxInfo> {
        self.ask_sandbox(&Request::Start {
            id: id.clone(),
            fault: None,
        })
        .await
    }

    /// Starts a stopped sandbox with a fault. For tests.
    pub async fn start_with_fault(&self, id: &SandboxId, fault: Fault) -> Result<SandboxInfo> {
        self.ask_sandbox(&Request::Start {
            id: id.clone(),
            fault: Some(fault),
        })
        .await
    }

    /// Removes a sandbox. Removing what is not there succeeds.
    pub async fn delete(&self, id: &SandboxId) -> Result<()> {
        self.ask_done(&Request::Delete { id: id.clone() }).await
    }

    /// Keeps the files of a sandbox as a template.
    pub async fn snapshot(&self, id: &SandboxId, name: &str) -> Result<Template> {
        self.ask_template(&Request::Snapshot {
            id: id.clone(),
            name: name.to_owned(),
        })
        .await
    }

    /// Makes another sandbox from the files of one.
    pub async fn fork(&self, id: &SandboxId, spec: &ForkSpec) -> Result<SandboxInfo> {
        self.ask_sandbox(&Request::Fork {
            id: id.clone(),
            spec: Box::new(spec.clone()),
        })
        .await
    }

    /// Lists the files a sandbox changed.
    pub async fn diff(&self, id: &SandboxId) -> Result<Diff> {
        match self.ask(&Request::Diff { id: id.clone() }).await? {
            Reply::Diff(diff) => Ok(diff),
            other => Err(unexpected(&other)),
        }
    }

    /// Reads what a sandbox uses.
    pub async fn stats(&self, id: &SandboxId) -> Result<SandboxStats> {
        match self.ask(&Request::Stats { id: id.clone() }).await? {
            Reply::Stats(stats) => Ok(stats),
            other => Err(unexpected(&other)),
        }
    }

    /// The client of a sandbox's agent. It connects with the first call.
    pub fn agent(&self, id: &SandboxId) -> AgentClient {
        AgentClient::new(Endpoint::Unix(self.shared.data.agent_socket(id)))
    }

    async fn ask_sandbox(&self, request: &Request) -> Result<SandboxInfo> {
        sandbox(self.ask(request).await?)
    }

    async fn ask_done(&self, request: &Request) -> Result<()> {
        match self.ask(request).await? {
            Reply::Done => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    async fn ask_template(&self, request: &Request) -> Result<Template> {
        match self.ask(request).await? {
            Reply::Template(template) => Ok(*template),
            other => Err(unexpected(&other)),
        }
    }

    async fn ask(&self, request: &Request) -> Result<Reply> {
        let idle = self.idle().pop();
        let mut connection = match idle {
            Some(connection) if !connection.is_closed() => connection,
            _ => self.dial().await?,
        };
        let mut answer = connection.ask(request).await;
        for _ in 0..RETRIES {
            // The launcher died during the request, or while it accepted the next connection. Repeated unless that might do
            // something twice.
            let lost = matches!(&answer, Err(error) if error.kind == ErrorKind::Unavailable);
            if !lost || !(request.can_be_repeated() || connection.was_not_received()) {
                break;
            }
            connection = self.dial().await?;
            answer = connection.ask(request).await;
        }
        let answer = answer?;
        let mut idle = self.idle();
        if idle.len() < MAX_IDLE {
            idle.push(connection);
        }
        answer
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.shared
            .idle
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    async fn dial(&self) -> Result<Connection> {
        let socket = self.shared.data.launcher_socket();
        if let Ok(connection) = Connection::open(&socket).await {
            return Ok(connection);
        }
        let _start_lock = self.shared.starting.lock().await;
        if let Ok(connection) = Connection::open(&socket).await {
            return Ok(connection);
        }
        start::start(&self.shared.config).await?;
        start::wait_for(&socket, &self.shared.config).await
    }
}

fn creates_at_once() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (processors * CREATES_PER_PROCESSOR).max(4)
}

fn sandbox(reply: Reply) -> Result<SandboxInfo> {
    match reply {
        Reply::Sandbox(info) => Ok(*info),
        other => Err(unexpected(&other)),
    }
}

fn unexpected(reply: &Reply) -> EngineError {
    EngineError::new(
        ErrorKind::Unavailable,
        format!("the launcher sent an unexpected reply: {reply:?}"),
    )
}
