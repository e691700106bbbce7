//! A provider in memory that fails on demand.
//!
//! It has the state machine and the answers of the embedded one (the conformance suite is passed by both) and nothing in it
//! happens by itself: ids count up, the clock is the test's. Clones share everything, so several services of one test can
//! stand on one place.
//!
//! [`FakeProvider::for_users`] is the one for users' own tests: its instances have an agent each, with files in memory.
//!
//! ```
//! # use sandyard_provider::{ProviderErrorKind, Verb};
//! # use sandyard_provider_fake::FakeProvider;
//! let provider = FakeProvider::new();
//! provider.fail_next(Verb::Pause, ProviderErrorKind::Unavailable);
//! let gate = provider.hold(Verb::Create); // every `create` now waits for `gate.release()`
//! # drop(gate);
//! ```
#![forbid(unsafe_code)]

mod agent;
mod backend;
mod gate;
mod script;
mod templates;
mod users;
mod volumes;
mod world;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandyard_agent_client::AgentClient;
use sandyard_core::network::{Flow, NetworkGrant};
use sandyard_core::{Clock, SandboxId, SandboxState};
use tokio::sync::mpsc;

use sandyard_provider::{
    Capabilities, Instance, InstanceSpec, ProviderErrorKind, ProviderInfo, Verb, VolumeSpec,
};

pub use agent::RulesError;
pub use gate::Gate;
pub use script::Call;
use script::{Moment, Script};
pub use users::FakeConfig;
use world::World;

/// The template it has from the beginning.
pub const TEMPLATE: &str = "base";

/// Flows that wait for whoever takes them.
const MAX_FLOWS: usize = 10_000;

/// Why an instance stopped that [`FakeProvider::vanish`] took the processes of.
pub const VANISHED: &str = "its first process ended";

/// A provider in memory. Clones are the same place.
#[derive(Clone)]
pub struct FakeProvider {
    info: ProviderInfo,
    agent: Option<AgentClient>,
    shared: Arc<Shared>,
}

struct Shared {
    world: Mutex<World>,
    script: Mutex<Script>,
    flows: mpsc::Sender<Flow>,
    /// Until somebody takes it.
    flows_out: Mutex<Option<mpsc::Receiver<Flow>>>,
}

impl Default for FakeProvider {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeProvider {
    /// An empty place that can do everything, by the host's clock.
    pub fn new() -> Self {
        let (flows, flows_out) = mpsc::channel(MAX_FLOWS);
        Self {
            info: ProviderInfo {
                name: "fake".to_owned(),
                location: "fake:1".to_owned(),
                capabilities: Capabilities {
                    has_external_templates: false,
                    ..Capabilities::ALL
                },
                default_limits: sandyard_core::Limits::default(),
                max_limits: sandyard_core::Limits::DEFAULT_MAX,
                default_template: TEMPLATE.to_owned(),
                limitations: Vec::new(),
            },
            agent: None,
            shared: Arc::new(Shared {
                world: Mutex::new(World::new()),
                script: Mutex::new(Script::default()),
                flows,
                flows_out: Mutex::new(Some(flows_out)),
            }),
        }
    }

    /// Goes by the test's clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        self.world().clock = clock;
        self
    }

    /// Tells something else about itself, such as fewer capabilities.
    #[must_use]
    pub fn with_info(mut self, change: impl FnOnce(&mut ProviderInfo)) -> Self {
        change(&mut self.info);
        self
    }

    /// Gives every instance this agent; without one, asking for it is unsupported.
    #[must_use]
    pub fn with_agent(mut self, agent: AgentClient) -> Self {
        self.agent = Some(agent);
        self
    }

    /// Lets the next call of `verb` fail before it does anything.
    pub fn fail_next(&self, verb: Verb, kind: ProviderErrorKind) {
        self.fail_nth(verb, 1, kind);
    }

    /// Lets the `nth` call of `verb` from now fail before it does anything; the next one is the first.
    pub fn fail_nth(&self, verb: Verb, nth: usize, kind: ProviderErrorKind) {
        self.script().fail(verb, nth, Moment::Before, kind);
    }

    /// Lets the next call of `verb` do its work and then fail: the answer got lost.
    pub fn lose_next_answer(&self, verb: Verb, kind: ProviderErrorKind) {
        self.script().fail(verb, 1, Moment::After, kind);
    }

    /// Lets every call fail as unreachable until it is set back.
    pub fn set_reachable(&self, is_reachable: bool) {
        self.script().is_down = !is_reachable;
    }

    /// Holds calls of `verb` before they do anything, until the gate is released or dropped.
    pub fn hold(&self, verb: Verb) -> Gate {
        self.script().hold(verb, Moment::Before)
    }

    /// Holds calls of `verb` when their work is done but not yet answered.
    pub fn hold_answer(&self, verb: Verb) -> Gate {
        self.script().hold(verb, Moment::After)
    }

    /// Lets every call of `verb` take that long, by tokio's clock.
    pub fn delay(&self, verb: Verb, by: std::time::Duration) {
        self.script().delays.insert(verb, by);
    }

    /// Every call so far, those that failed too, in the order they came.
    pub fn calls(&self) -> Vec<Call> {
        self.script().calls.clone()
    }

    /// How often `verb` was called.
    pub fn count(&self, verb: Verb) -> usize {
        let calls = &self.script().calls;
        calls.iter().filter(|call| call.verb == verb).count()
    }

    /// All instances, those of other tools included.
    pub fn instances(&self) -> Vec<Instance> {
        let world = self.world();
        world.instances.values().map(|one| one.instance()).collect()
    }

    /// What an instance was asked to be.
    pub fn spec_of(&self, id: &str) -> Option<InstanceSpec> {
        let world = self.world();
        world.instances.get(id).map(|one| one.spec.clone())
    }

    /// How many ready ones were asked for last.
    pub fn ready(&self) -> usize {
        self.world().ready
    }

    /// The volumes there are.
    pub fn volumes(&self) -> Vec<VolumeSpec> {
        self.world().volumes.values().cloned().collect()
    }

    /// Ends an instance's processes without anybody having asked.
    pub fn vanish(&self, id: &str) {
        let mut world = self.world();
        if let Some(one) = world.instances.get_mut(id)
            && one.state.is_live()
        {
            one.set_state(SandboxState::Stopped);
            one.reason = Some(VANISHED.to_owned());
            world.grants.remove(id);
        }
    }

    /// Takes an instance away with all it held, as a lost disk does.
    pub fn lose(&self, id: &str) {
        self.world().remove(id);
    }

    /// Puts an instance there that is another tool's: no call may show or touch it.
    pub fn add_foreign_instance(&self) -> String {
        self.world().add(World::spec_of_nobody(), false)
    }

    /// Puts an instance there that was made for a sandbox nobody remembers.
    pub fn add_orphan(&self, sandbox_id: SandboxId) -> String {
        let spec = InstanceSpec {
            sandbox_id,
            ..World::spec_of_nobody()
        };
        self.world().add(spec, true)
    }

    /// Lets a sandbox have tried to reach something.
    ///
    /// # Panics
    /// When nobody took the flows and thousands wait.
    pub fn push_flow(&self, flow: Flow) {
        let pushed = self.shared.flows.try_send(flow);
        pushed.expect("somebody takes the flows");
    }

    /// Says what of any policy cannot be enforced here from now on.
    pub fn set_unenforced(&self, words: Vec<String>) {
        self.world().unenforced = words;
    }

    /// What an instance was last allowed to reach; none once its processes ended.
    pub fn grant(&self, id: &str) -> Option<NetworkGrant> {
        self.world().grants.get(id).cloned()
    }

    fn world(&self) -> MutexGuard<'_, World> {
        let world = self.shared.world.lock();
        world.unwrap_or_else(PoisonError::into_inner)
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        let script = self.shared.script.lock();
        script.unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for FakeProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeProvider")
            .field("location", &self.info.location)
            .finish_non_exhaustive()
    }
}
