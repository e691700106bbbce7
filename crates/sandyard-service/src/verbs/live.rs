//! A sandbox to talk to.
//!
//! Every call that touches what is inside a sandbox goes through here: it wakes the sandbox if need be and marks it as in
//! use. The mark is set before the row is believed, and a pause for idleness looks at the marks after it has claimed the row:
//! so either the pause sees the mark and leaves, or the call sees the claim and waits.

use std::time::{Duration, Instant};

use sandyard_agent_client::{AgentClient, ClientError};
use sandyard_core::{Caller, ErrorKind, SandboxId, SandboxStatus};
use sandyard_provider::AgentAddress;
use sandyard_store::model::{Operation, Sandbox};

use crate::activity::ActivityGuard;
use crate::error::{ServiceError, ServiceResult};
use crate::memory::{MemoryBudget, MemoryHold};
use crate::service::{KnownAgent, Service};

/// A row this near its end may be paused by another server at any moment, so the use is written down at once.
const NEAR_END_MS: i64 = 5_000;

/// An agent that answered this lately is not asked again whether it is there.
const FRESH: Duration = Duration::from_secs(2);

/// A sandbox that runs, its agent, and the mark that it is in use: while this lives, the sandbox is not idle.
#[derive(Debug)]
pub struct Live {
    /// The row.
    pub sandbox: Sandbox,
    /// Its agent.
    pub agent: AgentClient,
    _use: ActivityGuard,
    memory: MemoryBudget,
}

impl Live {
    /// Begins to count memory that is used for this sandbox, for its owner.
    pub fn hold_memory(&self) -> MemoryHold {
        self.memory.hold(&self.sandbox.owner)
    }
}

impl Service {
    /// A sandbox to talk to: wakes it if need be, once for all who ask, and counts as activity while it is held.
    pub async fn live(&self, caller: &Caller, name: &str) -> ServiceResult<Live> {
        let sandbox = self.existing(caller, name).await?;
        self.make_live(caller, sandbox).await
    }

    /// Wakes a paused sandbox for input on a stream that was open when it was paused. One that is only woken on request stays
    /// paused.
    pub async fn wake_for_input(&self, caller: &Caller, id: &SandboxId) -> ServiceResult<()> {
        let sandbox = self.store().sandbox(id).await?;
        let sandbox = sandbox.ok_or_else(|| ServiceError::no_sandbox(id.as_str()))?;
        if sandbox.status == SandboxStatus::Paused && sandbox.is_auto_resumed {
            self.wake(caller, id).await?;
        }
        Ok(())
    }

    pub(super) async fn make_live(
        &self,
        caller: &Caller,
        mut sandbox: Sandbox,
    ) -> ServiceResult<Live> {
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
            if sandbox.status == SandboxStatus::Paused && !sandbox.is_auto_resumed {
                return Err(ServiceError::new(
                    ErrorKind::Conflict,
                    format!("sandbox `{}` is paused", sandbox.id),
                )
                .hint("it does not wake by itself: connect to it first"));
            }
            sandbox = self.wake(caller, &sandbox.id).await?;
        }
        let mut agent = self.agent(&sandbox).await?;
        if !self.has_answered_lately(&sandbox.id) && !self.answers(&sandbox.id, &agent).await {
            // Its processes ended and nobody has noticed yet: this request does, and starts it again.
            self.agents().remove(&sandbox.id);
            self.mend(&Caller::system(), &sandbox.id).await?;
            sandbox = self.wake(caller, &sandbox.id).await?;
            agent = self.agent(&sandbox).await?;
        }
        Ok(Live {
            sandbox,
            agent,
            _use: guard,
            memory: self.memory().clone(),
        })
    }

    /// The client of a running sandbox's agent.
    pub(crate) async fn agent(&self, sandbox: &Sandbox) -> ServiceResult<AgentClient> {
        let id = sandbox.provider_id.clone().ok_or_else(|| {
            ServiceError::new(
                ErrorKind::Busy,
                format!("sandbox `{}` is not made yet", sandbox.id),
            )
        })?;
        if let Some(known) = self.agents().get(&sandbox.id)
            && known.instance == id
        {
            return Ok(known.client.clone());
        }
        let provider = self.places().provider_of(sandbox).await?;
        let agent = provider
            .agent(&AgentAddress {
                id: id.clone(),
                access_token: sandbox.access_token.clone(),
            })
            .await?;
        // An agent on another node may move with its sandbox's node; only what is here is kept.
        if self.places().local_for(&sandbox.location).is_some() {
            let known = KnownAgent {
                instance: id,
                client: agent.clone(),
                answered: None,
            };
            self.agents().insert(sandbox.id.clone(), known);
        }
        Ok(agent)
    }

    /// Says whether an agent is there. A slow one counts as there.
    async fn answers(&self, id: &SandboxId, agent: &AgentClient) -> bool {
        let health = tokio::time::timeout(Duration::from_secs(1), agent.health()).await;
        let answers = !matches!(health, Ok(Err(ClientError::Connect { .. })));
        if let Some(known) = self.agents().get_mut(id)
            && answers
        {
            known.answered = Some(Instant::now());
        }
        answers
    }

    /// By the agent's answers and not by the requests for it: a client that tries again and again must not keep a dead one
    /// from being noticed.
    fn has_answered_lately(&self, id: &SandboxId) -> bool {
        let agents = self.agents();
        let answered = agents.get(id).and_then(|known| known.answered);
        answered.is_some_and(|answered| answered.elapsed() < FRESH)
    }
}

/// Says whether a row can be believed to run for the next moments.
pub(super) fn is_ready(sandbox: &Sandbox) -> bool {
    let is_quiet = match &sandbox.claim {
        None => true,
        Some((operation, ..)) => {
            matches!(
                operation,
                Operation::Change | Operation::Copy | Operation::Reconcile
            )
        }
    };
    sandbox.status == SandboxStatus::Running && is_quiet
}
