//! Gives callers a running sandbox.
//!
//! Every call that uses what is inside a sandbox comes through here. It records activity, and wakes the sandbox if it does not run. It
//! records the activity before it reads the row, and a pause for idleness checks the activity after it has claimed the row. So either the
//! pause sees the activity and gives up, or the call sees the claim and waits.

use std::time::{Duration, Instant};

use sandyard_agent_client::{AgentClient, ClientError};
use sandyard_core::{Caller, SandboxId, SandboxStatus};
use sandyard_provider::AgentAddress;
use sandyard_store::model::Sandbox;

use super::may_wake::{MayWake, is_ready};
use crate::error::{Result, ServiceError};
use crate::memory::{MemoryBudget, MemoryHold};
use crate::service::{KnownAgent, Service};
use crate::state::activity::ActivityGuard;

/// Another server may pause a sandbox this near to its end at any moment, so its activity is saved at once. In milliseconds.
const NEAR_END_MS: i64 = 5_000;

/// How long after an answer an agent is not checked again.
const RECENT: Duration = Duration::from_secs(2);

/// A running sandbox and its agent. The sandbox is in use until this is dropped.
#[derive(Debug)]
pub struct Live {
    /// The sandbox's row.
    pub sandbox: Sandbox,
    /// Its agent.
    pub agent: AgentClient,
    _activity: ActivityGuard,
    memory: MemoryBudget,
}

impl Live {
    /// Starts counting memory that is used for this sandbox, against its owner's share.
    pub fn hold_memory(&self) -> MemoryHold {
        self.memory.hold(&self.sandbox.owner)
    }
}

impl Service {
    /// A running sandbox of the caller. Wakes it if necessary, once for all concurrent calls.
    pub async fn live(&self, caller: &Caller, name: &str) -> Result<Live> {
        let sandbox = self.existing(caller, name).await?;
        self.make_live(caller, sandbox, MayWake::AutoResumed).await
    }

    /// Wakes a paused sandbox for input on a stream that was open when it was paused, unless its automatic resume is off.
    pub async fn wake_for_input(&self, caller: &Caller, id: &SandboxId) -> Result<()> {
        let sandbox = self.store().sandbox(id).await?;
        let sandbox = sandbox.ok_or_else(|| ServiceError::no_sandbox(id.as_str()))?;
        if sandbox.status == SandboxStatus::Paused && sandbox.is_auto_resumed {
            self.wake(caller, id, MayWake::AutoResumed).await?;
        }
        Ok(())
    }

    /// A running sandbox, which is woken if `may_wake` permits. A pause or stop in progress is waited for.
    pub(super) async fn make_live(
        &self,
        caller: &Caller,
        mut sandbox: Sandbox,
        may_wake: MayWake,
    ) -> Result<Live> {
        let expires_ms = self.expires_ms(&sandbox);
        let guard = self.activity().begin(&sandbox.id);
        let now_ms = self.clock().now_ms();
        if expires_ms.is_some_and(|end_ms| end_ms < now_ms + NEAR_END_MS) {
            self.store()
                .touch_sandboxes(&[(sandbox.id.clone(), now_ms)])
                .await?;
            sandbox = self
                .store()
                .sandbox(&sandbox.id)
                .await?
                .ok_or_else(|| ServiceError::no_sandbox(sandbox.id.as_str()))?;
        }
        if !is_ready(&sandbox) {
            may_wake.check(&sandbox)?;
            sandbox = self.wake(caller, &sandbox.id, may_wake).await?;
        }
        let mut agent = self.agent(&sandbox).await?;
        if !self.has_answered_recently(&sandbox.id) && !self.is_answering(&sandbox.id, &agent).await
        {
            self.agents().remove(&sandbox.id);
            let may_wake = match self.repair(&Caller::system(), &sandbox.id).await? {
                // Its processes have ended. This request is the first to notice, and starts it again.
                SandboxStatus::Running => MayWake::All,
                // It was paused or stopped meanwhile.
                _ => may_wake,
            };
            sandbox = self.wake(caller, &sandbox.id, may_wake).await?;
            agent = self.agent(&sandbox).await?;
        }
        Ok(Live {
            sandbox,
            agent,
            _activity: guard,
            memory: self.memory().clone(),
        })
    }

    /// A client of a running sandbox's agent.
    pub(crate) async fn agent(&self, sandbox: &Sandbox) -> Result<AgentClient> {
        let id = sandbox.provider_id.clone().ok_or_else(|| {
            ServiceError::busy(format!("sandbox `{}` is not created yet", sandbox.id))
        })?;
        if let Some(cached) = self.agents().get(&sandbox.id)
            && cached.instance == id
        {
            return Ok(cached.client.clone());
        }
        let provider = self.registry().provider_of(sandbox).await?;
        let agent = provider
            .agent(&AgentAddress {
                id: id.clone(),
                access_token: sandbox.access_token.clone(),
            })
            .await?;
        // Only local agents are cached: the address of another node may change.
        if self.registry().local_for(&sandbox.location).is_some() {
            let cached = KnownAgent {
                instance: id,
                client: agent.clone(),
                answered: None,
            };
            self.agents().insert(sandbox.id.clone(), cached);
        }
        Ok(agent)
    }

    /// Says whether an agent accepts connections. A slow one does.
    async fn is_answering(&self, id: &SandboxId, agent: &AgentClient) -> bool {
        let health = tokio::time::timeout(Duration::from_secs(1), agent.health()).await;
        let is_answering = !matches!(health, Ok(Err(ClientError::Connect { .. })));
        if let Some(cached) = self.agents().get_mut(id)
            && is_answering
        {
            cached.answered = Some(Instant::now());
        }
        is_answering
    }

    /// Counts the agent's answers, not the requests: a client that retries often must not keep a dead agent unnoticed.
    fn has_answered_recently(&self, id: &SandboxId) -> bool {
        let agents = self.agents();
        let answered = agents.get(id).and_then(|cached| cached.answered);
        answered.is_some_and(|answered| answered.elapsed() < RECENT)
    }
}
