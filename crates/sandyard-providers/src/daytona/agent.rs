//! Our agent in a sandbox of theirs: brought in, started, reached.

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
use super::port_link::{Found, PortLink};
use super::program::{self, AGENT_PORT, Settings};
use super::toolbox::Toolbox;
use crate::agent_client;
use crate::cloud_tools::{self, ToolServer};

impl Shared {
    /// Brings the program in, unless it is there, and what it is told.
    pub(super) async fn install(&self, sandbox: &Sandbox, settings: &Settings<'_>) -> Result<()> {
        let toolbox = Toolbox::of(&self.api, sandbox).await?;
        let folder = program::folder(&toolbox.home().await?);
        toolbox.make_folder(&folder).await?;
        let text =
            serde_json::to_vec(settings).map_err(|error| super::error::odd("settings", error))?;
        let place = program::settings_place(&folder);
        let content = || async { Ok((Body::from(text.clone()), text.len() as u64)) };
        let most = self.timeouts.create;
        toolbox.upload(&place, "600", most, content).await?;
        self.bring_program(&toolbox, &folder).await
    }

    async fn bring_program(&self, toolbox: &Toolbox<'_>, folder: &str) -> Result<()> {
        let place = program::place(&self.program, folder);
        if toolbox.file_size(&place).await? == Some(self.program.size) {
            return Ok(());
        }
        // Half a program never has its name.
        let part = format!("{place}.part");
        let content = || async { program::body(&self.program) };
        let most = self.timeouts.create;
        toolbox.upload(&part, "755", most, content).await?;
        toolbox.rename(&part, &place).await
    }

    /// Sees to it that the agent of a started sandbox answers.
    pub(super) async fn ensure_agent(&self, sandbox: &Sandbox) -> Result<()> {
        let known = self.known.of(&sandbox.id);
        let _starting = known.starting.lock().await;
        if self.look(&sandbox.id).await? == Found::Agent {
            return Ok(());
        }
        let toolbox = Toolbox::of(&self.api, sandbox).await?;
        if !toolbox.is_port_in_use(AGENT_PORT).await.unwrap_or(false) {
            self.run_agent(&toolbox, sandbox).await?;
        }
        self.until_agent(&sandbox.id).await
    }

    /// Starts the first agent of a new sandbox. One that answers already is of what it was copied from, as it ran there, and has
    /// that one's token.
    pub(super) async fn begin_agent(&self, sandbox: &Sandbox) -> Result<()> {
        let known = self.known.of(&sandbox.id);
        let _starting = known.starting.lock().await;
        let toolbox = Toolbox::of(&self.api, sandbox).await?;
        let mut pauses = Backoff::new(self.timeouts.create);
        while toolbox.is_port_in_use(AGENT_PORT).await.unwrap_or(false) {
            toolbox.end_session().await?;
            pauses.next("end of the agent before").await?;
        }
        self.run_agent(&toolbox, sandbox).await?;
        self.until_agent(&sandbox.id).await
    }

    async fn run_agent(&self, toolbox: &Toolbox<'_>, sandbox: &Sandbox) -> Result<()> {
        tracing::debug!(instance.id = sandbox.id, "Starting the agent at Daytona");
        let folder = program::folder(&toolbox.home().await?);
        self.bring_program(toolbox, &folder).await?;
        toolbox.run(&program::line(&self.program, &folder)).await
    }

    /// Waits until the agent answers.
    async fn until_agent(&self, id: &str) -> Result<()> {
        let mut pauses = Backoff::new(self.timeouts.create);
        while self.look(id).await? != Found::Agent {
            pauses.next("start of the agent").await?;
        }
        Ok(())
    }

    /// Looks who answers on the agent's port, with a new link where the old one is refused.
    async fn look(&self, id: &str) -> Result<Found> {
        let known = self.known.of(id);
        for is_last in [false, true] {
            let link = self.link(id, AGENT_PORT).await?;
            // A proxy that cannot be reached is like one with nobody behind it: what comes next tells.
            match link.probe(self.api.edge()).await.unwrap_or(Found::Nobody) {
                Found::Agent => {
                    known.has_answered();
                    return Ok(Found::Agent);
                }
                Found::Refusal if !is_last => known.forget_links(),
                other => return Ok(other),
            }
        }
        Ok(Found::Refusal)
    }

    /// The way to a port inside.
    async fn link(&self, id: &str, port: u16) -> Result<Arc<PortLink>> {
        let known = self.known.of(id);
        if let Some(link) = known.link(port) {
            return Ok(link);
        }
        let path = ["sandbox", id, "ports", &port.to_string(), "preview-url"];
        let preview: PreviewUrl = self
            .api
            .ask("preview", self.api.to(Method::GET, &path))
            .await?;
        Ok(known.set_link(port, PortLink::new(&preview, self.api.edge())?))
    }

    /// Sees to it that the agent of a running instance answers; that of a frozen one does when it is thawed.
    async fn wake_agent(&self, id: &str) -> Result<()> {
        let is_frozen = |state| matches!(state, State::Paused | State::Pausing | State::Resuming);
        let sandbox = self.own(id).await?.ok_or_else(absent)?;
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
        // It may have been paused in the middle of this.
        match self.own(id).await {
            Ok(Some(sandbox)) if is_frozen(sandbox.state) => Ok(()),
            _ => Err(error),
        }
    }

    /// The client of an instance's agent, which is started if it is not there.
    pub(super) async fn agent(self: &Arc<Self>, address: &AgentAddress) -> Result<AgentClient> {
        let id = address.id.as_str();
        let known = self.known.of(id);
        if !known.is_fresh() {
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
        let client =
            |way: AgentDialler| agent_client::with_token(Endpoint::Custom(Arc::new(way)), token);
        let Some(kit) = &self.kit else {
            return client(plain);
        };
        let agent = client(plain.clone())?;
        let memory = known.tools.clone();
        client(AgentDialler {
            tools: ToolServer::new(kit.clone(), agent, id, token, memory),
            ..plain
        })
    }
}

/// The way to one agent.
#[derive(Clone)]
struct AgentDialler {
    name: String,
    id: String,
    shared: Arc<Shared>,
    link: Arc<PortLink>,
    /// None on the way that the tool server is started by.
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

    /// Fails where requests with our headers would: the caller then asks for another client.
    async fn check(&self) -> io::Result<()> {
        let known = self.shared.known.of(&self.id);
        let refused = |message: &str| io::Error::new(io::ErrorKind::ConnectionRefused, message);
        if !known.is_fresh() {
            match self.link.probe(self.shared.api.edge()).await? {
                Found::Agent => known.has_answered(),
                Found::Refusal => known.forget_links(),
                Found::Nobody => return Err(refused("no agent answers there")),
            }
        }
        match known.link(AGENT_PORT) {
            Some(link) if !link.is_same(&self.link) => Err(refused("its address is another now")),
            None if !known.is_fresh() => Err(refused("its token is not taken any more")),
            _ => Ok(()),
        }
    }
}

/// Ports of Daytona's own, which whoever has a link may do everything with: its daemon, its terminal, its way in by SSH, its
/// recordings. And the agent's, which is reached as an agent.
const CLOSED: [u16; 5] = [2280, 22220, 22222, 33333, AGENT_PORT];

/// How long the way to a port may take to be told.
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
            if CLOSED.contains(&port) {
                let message = "the port is not for others";
                return Err(io::Error::new(io::ErrorKind::ConnectionRefused, message));
            }
            let tools = self.tools.as_ref();
            cloud_tools::dial(tools, port, |port| self.open(port)).await
        }))
    }

    fn port_timeout(&self) -> Option<Duration> {
        self.tools.as_ref().map(|_| cloud_tools::PATIENCE)
    }

    fn is_host_connection(&self) -> bool {
        false
    }
}
