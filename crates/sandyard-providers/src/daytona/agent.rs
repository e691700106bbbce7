//! The agent in a sandbox of Daytona: installed, started, reached.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method};
use reqwest::Body;
use sandyard_agent_client::{AgentClient, Dial, Dialling, Endpoint, PortDialling, PortStream};
use sandyard_provider::{AgentAddress, Result};

use super::Shared;
use super::backoff::Backoff;
use super::error::{absent, conflict};
use super::model::{PreviewUrl, Sandbox, State};
use super::port_link::{PortLink, ProbeResult};
use super::program::{self, AGENT_PORT, Settings};
use super::toolbox::Toolbox;
use crate::agent_client;
use crate::cloud_tools::{self, ToolServer};

impl Shared {
    /// Sends the settings, and the program unless the sandbox has it.
    pub(super) async fn install(&self, sandbox: &Sandbox, settings: &Settings<'_>) -> Result<()> {
        let toolbox = Toolbox::of(&self.api, sandbox).await?;
        let folder = program::folder(&toolbox.home().await?);
        toolbox.make_folder(&folder).await?;
        let text = serde_json::to_vec(settings)
            .map_err(|error| super::error::unreadable("settings", error))?;
        let path = program::settings_path(&folder);
        let content = || async { Ok((Body::from(text.clone()), text.len() as u64)) };
        let timeout = self.timeouts.create;
        toolbox.upload(&path, "600", timeout, content).await?;
        self.send_program(&toolbox, &folder).await
    }

    async fn send_program(&self, toolbox: &Toolbox<'_>, folder: &str) -> Result<()> {
        let path = program::path(&self.program, folder);
        if toolbox.file_size(&path).await? == Some(self.program.size) {
            return Ok(());
        }
        // An incomplete program never has the final name.
        let part = format!("{path}.part");
        let content = || async { program::body(&self.program) };
        let timeout = self.timeouts.create;
        toolbox.upload(&part, "755", timeout, content).await?;
        toolbox.rename(&part, &path).await
    }

    /// Makes sure that the agent of a started sandbox answers.
    pub(super) async fn ensure_agent(&self, sandbox: &Sandbox) -> Result<()> {
        let cached = self.cache.of(&sandbox.id);
        let _starting = cached.starting.lock().await;
        if self.probe(&sandbox.id).await? == ProbeResult::Agent {
            return Ok(());
        }
        let toolbox = Toolbox::of(&self.api, sandbox).await?;
        if !toolbox.is_port_in_use(AGENT_PORT).await.unwrap_or(false) {
            self.run_agent(&toolbox, sandbox).await?;
        }
        self.wait_for_agent(&sandbox.id).await
    }

    /// Starts the first agent of a new sandbox. An agent that answers already was copied with its source's memory, and has its
    /// source's token.
    pub(super) async fn start_first_agent(&self, sandbox: &Sandbox) -> Result<()> {
        let cached = self.cache.of(&sandbox.id);
        let _starting = cached.starting.lock().await;
        let toolbox = Toolbox::of(&self.api, sandbox).await?;
        let mut pauses = Backoff::new(self.timeouts.create);
        while toolbox.is_port_in_use(AGENT_PORT).await.unwrap_or(false) {
            toolbox.end_session().await?;
            pauses.next("end of the previous agent").await?;
        }
        self.run_agent(&toolbox, sandbox).await?;
        self.wait_for_agent(&sandbox.id).await
    }

    async fn run_agent(&self, toolbox: &Toolbox<'_>, sandbox: &Sandbox) -> Result<()> {
        tracing::debug!(instance.id = sandbox.id, "Starting the agent at Daytona");
        let folder = program::folder(&toolbox.home().await?);
        self.send_program(toolbox, &folder).await?;
        toolbox
            .run(&program::command_line(&self.program, &folder))
            .await
    }

    /// Waits until the agent answers.
    async fn wait_for_agent(&self, id: &str) -> Result<()> {
        let mut pauses = Backoff::new(self.timeouts.create);
        while self.probe(id).await? != ProbeResult::Agent {
            pauses.next("start of the agent").await?;
        }
        Ok(())
    }

    /// Probes the agent's port, with a new link when the old one is refused.
    async fn probe(&self, id: &str) -> Result<ProbeResult> {
        let cached = self.cache.of(id);
        for is_last in [false, true] {
            let link = self.link(id, AGENT_PORT).await?;
            // A proxy that cannot be reached counts as one without an agent: the next request shows the cause.
            match link
                .probe(self.api.edge())
                .await
                .unwrap_or(ProbeResult::NoAgent)
            {
                ProbeResult::Agent => {
                    cached.has_answered();
                    return Ok(ProbeResult::Agent);
                }
                ProbeResult::Refusal if !is_last => cached.forget_links(),
                other => return Ok(other),
            }
        }
        Ok(ProbeResult::Refusal)
    }

    /// The link to a port of the sandbox.
    async fn link(&self, id: &str, port: u16) -> Result<Arc<PortLink>> {
        let cached = self.cache.of(id);
        if let Some(link) = cached.link(port) {
            return Ok(link);
        }
        let path = ["sandbox", id, "ports", &port.to_string(), "preview-url"];
        let preview: PreviewUrl = self
            .api
            .ask("preview", self.api.to(Method::GET, &path))
            .await?;
        Ok(cached.set_link(port, PortLink::new(&preview, self.api.edge())?))
    }

    /// Makes sure that the agent of a running instance answers; that of a paused one answers after it is resumed.
    async fn wake_agent(&self, id: &str) -> Result<()> {
        let is_frozen = |state| matches!(state, State::Paused | State::Pausing | State::Resuming);
        let sandbox = self.find_own(id).await?.ok_or_else(absent)?;
        if is_frozen(sandbox.state) {
            return Ok(());
        }
        if matches!(
            sandbox.state,
            State::Stopped | State::Stopping | State::Archived | State::Archiving
        ) {
            return Err(conflict("the instance has no processes"));
        }
        let Err(error) = self.ensure_agent(&sandbox).await else {
            return Ok(());
        };
        // It may have been paused meanwhile.
        match self.find_own(id).await {
            Ok(Some(sandbox)) if is_frozen(sandbox.state) => Ok(()),
            _ => Err(error),
        }
    }

    /// The client of an instance's agent, which is started if it does not run.
    pub(super) async fn agent(self: &Arc<Self>, address: &AgentAddress) -> Result<AgentClient> {
        let id = address.id.as_str();
        let cached = self.cache.of(id);
        if !cached.answered_recently() {
            self.wake_agent(id).await?;
        }
        let link = self.link(id, AGENT_PORT).await?;
        let plain = AgentDialler {
            name: format!("{id} at Daytona by link {}", link.number()),
            id: id.to_owned(),
            shared: self.clone(),
            link,
            tools: None,
        };
        let token = address.access_token.as_str();
        let client = |dialler: AgentDialler| {
            agent_client::with_token(Endpoint::Custom(Arc::new(dialler)), token)
        };
        let Some(installer) = &self.installer else {
            return client(plain);
        };
        let agent = client(plain.clone())?;
        let state = cached.tools.clone();
        client(AgentDialler {
            tools: ToolServer::new(installer.clone(), agent, id, token, state),
            ..plain
        })
    }
}

/// Dials the agent of one instance.
#[derive(Clone)]
struct AgentDialler {
    name: String,
    id: String,
    shared: Arc<Shared>,
    link: Arc<PortLink>,
    /// `None` for the dialler that starts the tool server.
    tools: Option<ToolServer>,
}

impl AgentDialler {
    /// Opens a connection to a port by its link.
    async fn open(&self, port: u16) -> io::Result<PortStream> {
        let link = tokio::time::timeout(LINK_TIMEOUT, self.shared.link(&self.id, port)).await;
        let link = link.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?;
        let link = link.map_err(io::Error::other)?;
        Ok(PortStream {
            stream: link.dial(self.shared.api.edge()).await?,
            headers: link.headers().clone(),
        })
    }

    /// Fails when requests with these headers would fail: the caller then requests another client.
    async fn check(&self) -> io::Result<()> {
        let cached = self.shared.cache.of(&self.id);
        let refused = |message: &str| io::Error::new(io::ErrorKind::ConnectionRefused, message);
        if !cached.answered_recently() {
            match self.link.probe(self.shared.api.edge()).await? {
                ProbeResult::Agent => cached.has_answered(),
                ProbeResult::Refusal => cached.forget_links(),
                ProbeResult::NoAgent => return Err(refused("no agent answers")),
            }
        }
        match cached.link(AGENT_PORT) {
            Some(link) if !link.is_same(&self.link) => {
                Err(refused("the agent's address has changed"))
            }
            None if !cached.answered_recently() => {
                Err(refused("the agent's token is no longer accepted"))
            }
            _ => Ok(()),
        }
    }
}

/// Ports of Daytona itself, which give full control to anyone with a link: its daemon, its terminal, SSH, its recordings. And the
/// agent's port.
const CLOSED_PORTS: [u16; 5] = [2280, 22220, 22222, 33333, AGENT_PORT];

/// How long Daytona may take to name the link to a port.
const LINK_TIMEOUT: Duration = Duration::from_secs(10);

impl Dial for AgentDialler {
    fn name(&self) -> &str {
        &self.name
    }

    fn dial(&self) -> Dialling<'_> {
        Box::pin(async {
            self.check().await?;
            self.link.dial(self.shared.api.edge()).await
        })
    }

    fn headers(&self) -> Option<&HeaderMap> {
        Some(self.link.headers())
    }

    fn dial_port(&self, port: u16) -> Option<PortDialling<'_>> {
        Some(Box::pin(async move {
            if CLOSED_PORTS.contains(&port) {
                let message = "the port is reserved";
                return Err(io::Error::new(io::ErrorKind::ConnectionRefused, message));
            }
            let tools = self.tools.as_ref();
            cloud_tools::dial(tools, port, |port| self.open(port)).await
        }))
    }

    fn port_timeout(&self) -> Option<Duration> {
        self.tools.as_ref().map(|_| cloud_tools::FIRST_DIAL_TIMEOUT)
    }

    fn is_host_connection(&self) -> bool {
        false
    }
}
