//! The service: the state that its verbs share.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use sandyard_agent_client::AgentClient;
use sandyard_core::{Caller, Clock, SandboxId};
use sandyard_provider::{Provider, ProviderInfo};
use sandyard_store::model::{NewEvent, Node, Sandbox, TimeoutAction, Timer};
use sandyard_store::{Store, Timers};
use serde_json::Value;
use tokio::sync::{Notify, broadcast};
use tokio_util::task::TaskTracker;

use crate::command_log::CommandLogs;
use crate::error::{Result, ServiceError};
use crate::expiry;
use crate::memory::MemoryBudget;
use crate::seal::Sealer;
use crate::settings::ServiceSettings;
use crate::state::activity::Activity;
use crate::state::clock_watch::ClockWatch;
use crate::state::health_checks::HealthChecks;
use crate::state::history::History;
use crate::state::locks::Locks;
use crate::state::node_setup::NodeSetup;
use crate::state::orphan_sightings::OrphanSightings;
use crate::state::provider_registry::{NODE_TIMEOUT, ProviderRegistry};
use crate::state::pushed_grants::PushedGrants;
use crate::state::recorders::Recorders;
use crate::state::status_changes::{StatusChange, StatusChanges};
use sandyard_core::clock::millis;
use sandyard_store::SANDBOX_TOPIC;

/// A cached client of an agent.
#[derive(Debug)]
pub(crate) struct KnownAgent {
    /// The id of the instance that it connects to.
    pub(crate) instance: String,
    /// The client.
    pub(crate) client: AgentClient,
    /// When the agent last answered a health check; none before the first one.
    pub(crate) answered: Option<Instant>,
}

/// The lifecycle of all sandboxes. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Service(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    timers: Timers,
    settings: ServiceSettings,
    clock: Clock,
    node: NodeSetup,
    started_ms: i64,
    clock_watch: ClockWatch,
    registry: ProviderRegistry,
    activity: Activity,
    locks: Locks,
    snapshot_names: Locks<String>,
    memory: MemoryBudget,
    command_logs: CommandLogs,
    recorders: Recorders,
    history: History,
    grants: PushedGrants,
    sealer: Sealer,
    /// Clients of agents, cached for their idle connections.
    agents: Mutex<HashMap<SandboxId, KnownAgent>>,
    orphans: OrphanSightings,
    health_checks: HealthChecks,
    /// Other nodes: the time in the last heartbeat of each, and when this server saw that heartbeat first.
    peers: Mutex<HashMap<String, (i64, Instant)>>,
    has_peers: AtomicBool,
    /// Operations that a shutdown waits for.
    tasks: TaskTracker,
    /// Notified whenever this server commits a change.
    changes: Notify,
    status_changes: StatusChanges,
    counter: AtomicU64,
}

impl Service {
    /// Opens the service of a server that is alone. Nothing runs in the background before [`Service::run`].
    pub async fn open(
        store: Store,
        timers: Timers,
        providers: Vec<Arc<dyn Provider>>,
        settings: ServiceSettings,
        clock: Clock,
    ) -> Result<Self> {
        let node = NodeSetup::alone()?;
        Self::open_as(node, store, timers, providers, settings, clock).await
    }

    /// Opens the service as one of several servers that share a store.
    pub async fn open_as(
        node: NodeSetup,
        store: Store,
        timers: Timers,
        providers: Vec<Arc<dyn Provider>>,
        settings: ServiceSettings,
        clock: Clock,
    ) -> Result<Self> {
        if providers.is_empty() {
            return Err(ServiceError::internal(
                "the service needs at least one provider",
            ));
        }
        let registry =
            ProviderRegistry::new(store.clone(), clock.clone(), providers, node.reach.clone());
        let command_logs = CommandLogs::open(
            settings.log_folder.clone(),
            settings.log_bytes_per_sandbox,
            &node.id,
        )
        .map_err(|error| ServiceError::internal("failed to open the command logs").source(error))?;
        let service = Self(Arc::new(Inner {
            started_ms: clock.now_ms(),
            clock_watch: ClockWatch::new(&clock),
            activity: Activity::new(clock.clone()),
            history: History::new(store.clone()),
            grants: PushedGrants::default(),
            sealer: Sealer::new(settings.sealing_key.as_ref()),
            store,
            timers,
            memory: MemoryBudget::new(settings.memory_bytes),
            settings,
            clock,
            node,
            registry,
            locks: Locks::default(),
            snapshot_names: Locks::default(),
            command_logs,
            recorders: Recorders::default(),
            agents: Mutex::default(),
            orphans: OrphanSightings::default(),
            health_checks: HealthChecks::default(),
            peers: Mutex::default(),
            has_peers: AtomicBool::new(false),
            tasks: TaskTracker::new(),
            changes: Notify::new(),
            status_changes: StatusChanges::default(),
            counter: AtomicU64::new(1),
        }));
        service.join_cluster().await?;
        Ok(service)
    }

    /// The settings.
    pub fn settings(&self) -> &ServiceSettings {
        &self.0.settings
    }

    /// The bound on bytes of requests and answers held in memory.
    pub fn memory(&self) -> &MemoryBudget {
        &self.0.memory
    }

    /// The default provider of this server.
    pub fn provider_info(&self) -> ProviderInfo {
        self.0.registry.default().info().clone()
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// The store, for what does not concern sandboxes: accounts, audit, health.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// The timer queue.
    pub fn timers(&self) -> &Timers {
        &self.0.timers
    }

    /// This node's id.
    pub fn node_id(&self) -> &str {
        &self.0.node.id
    }

    /// This node's provider for a location, which other nodes may use.
    pub fn local_provider(&self, location: &str) -> Option<Arc<dyn Provider>> {
        self.0.registry.local_for(location).cloned()
    }

    /// When a sandbox's time is over unless it is used, in milliseconds since 1970; none if it does not run.
    pub fn expires_ms(&self, sandbox: &Sandbox) -> Option<i64> {
        expiry::expires_ms(sandbox, self.last_activity_ms(sandbox))
    }

    /// When a sandbox is deleted unless it is used, in milliseconds since 1970; none if it is paused before, or kept without limit.
    pub fn deletes_ms(&self, sandbox: &Sandbox) -> Option<i64> {
        match sandbox.timeout_action {
            TimeoutAction::Delete => self.expires_ms(sandbox),
            _ => None,
        }
        .or_else(|| expiry::retention_ends_ms(sandbox, self.settings().retention))
    }

    /// When a sandbox was last used, in milliseconds since 1970, including what is not saved yet.
    pub fn last_activity_ms(&self, sandbox: &Sandbox) -> i64 {
        self.activity()
            .last_ms(&sandbox.id)
            .map_or(sandbox.last_activity_ms, |last_ms| {
                last_ms.max(sandbox.last_activity_ms)
            })
    }

    /// Counts sandboxes by status.
    pub async fn counts(&self) -> Result<BTreeMap<&'static str, i64>> {
        let counts = self.store().count_sandboxes(None).await?;
        Ok(counts
            .into_iter()
            .map(|(status, count)| (status.as_str(), count))
            .collect())
    }

    /// The running servers that share this store, including this one.
    pub async fn nodes(&self) -> Result<Vec<Node>> {
        let since_ms = self.clock().now_ms() - millis(NODE_TIMEOUT);
        Ok(self.store().nodes(since_ms).await?)
    }

    /// Timers that are dead after too many failures.
    pub async fn dead_timers(&self) -> Result<Vec<Timer>> {
        Ok(self.timers().dead().await?)
    }

    /// Revives a dead timer. Returns false if there is none.
    pub async fn revive_timer(&self, subject: &str) -> Result<bool> {
        Ok(self.timers().revive(SANDBOX_TOPIC, subject).await?)
    }

    /// Every change of a sandbox's status that this node makes from now on.
    pub fn subscribe_status(&self) -> broadcast::Receiver<StatusChange> {
        self.0.status_changes.subscribe()
    }

    pub(crate) fn status_changes(&self) -> &StatusChanges {
        &self.0.status_changes
    }

    pub(crate) fn registry(&self) -> &ProviderRegistry {
        &self.0.registry
    }

    pub(crate) fn node(&self) -> &NodeSetup {
        &self.0.node
    }

    pub(crate) fn clock_watch(&self) -> &ClockWatch {
        &self.0.clock_watch
    }

    pub(crate) fn started_ms(&self) -> i64 {
        self.0.started_ms
    }

    pub(crate) fn activity(&self) -> &Activity {
        &self.0.activity
    }

    /// Locks by the owner and name of a snapshot.
    pub(crate) fn snapshot_names(&self) -> &Locks<String> {
        &self.0.snapshot_names
    }

    pub(crate) fn locks(&self) -> &Locks {
        &self.0.locks
    }

    pub(crate) fn command_logs(&self) -> &CommandLogs {
        &self.0.command_logs
    }

    pub(crate) fn recorders(&self) -> &Recorders {
        &self.0.recorders
    }

    pub(crate) fn history(&self) -> &History {
        &self.0.history
    }

    pub(crate) fn grants(&self) -> &PushedGrants {
        &self.0.grants
    }

    pub(crate) fn sealer(&self) -> &Sealer {
        &self.0.sealer
    }

    pub(crate) fn changes(&self) -> &Notify {
        &self.0.changes
    }

    pub(crate) fn tasks(&self) -> &TaskTracker {
        &self.0.tasks
    }

    pub(crate) fn health_checks(&self) -> &HealthChecks {
        &self.0.health_checks
    }

    pub(crate) fn orphans(&self) -> &OrphanSightings {
        &self.0.orphans
    }

    pub(crate) fn peers(&self) -> parking_lot::MutexGuard<'_, HashMap<String, (i64, Instant)>> {
        self.0.peers.lock()
    }

    /// Says whether other running servers share the store.
    pub(crate) fn has_peers(&self) -> bool {
        self.0.has_peers.load(Ordering::Relaxed)
    }

    pub(crate) fn set_has_peers(&self, has_peers: bool) {
        self.0.has_peers.store(has_peers, Ordering::Relaxed);
    }

    pub(crate) fn next_number(&self) -> u64 {
        self.0.counter.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn agents(&self) -> parking_lot::MutexGuard<'_, HashMap<SandboxId, KnownAgent>> {
        self.0.agents.lock()
    }

    /// A new event of a sandbox.
    pub(crate) fn event(
        &self,
        sandbox: &Sandbox,
        kind: &str,
        caller: &Caller,
        data: Value,
    ) -> NewEvent {
        NewEvent {
            sandbox_id: sandbox.id.clone(),
            owner: sandbox.owner.clone(),
            at_ms: self.clock().now_ms(),
            kind: kind.to_owned(),
            actor: caller.name.clone(),
            data,
        }
    }

    /// Runs an operation on a task of its own, so that a client that disconnects does not leave it half done.
    pub(crate) async fn detached<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        match self.tasks().spawn(work).await {
            Ok(result) => result,
            Err(error) => {
                Err(ServiceError::internal("the operation failed unexpectedly").source(error))
            }
        }
    }
}
