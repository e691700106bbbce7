//! A provider in memory that fails on demand.
//!
//! It has the states and errors of the embedded provider (both pass the conformance suite), and it is deterministic: ids count
//! up, and the test sets the clock. Clones share their state, so several services of one test can use the same provider.
//!
//! [`FakeProvider::for_users`] creates the provider for users' own tests: its instances have agents with files in memory, and
//! commands have scripted answers (see [`Rule`]).
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
use std::sync::Arc;

use parking_lot::Mutex;
use sandyard_agent_client::AgentClient;
use sandyard_core::network::{Flow, NetworkGrant};
use sandyard_core::{Clock, SandboxId, SandboxState};
use tokio::sync::mpsc;

use sandyard_provider::{
    Capabilities, Instance, InstanceSpec, ProviderErrorKind, ProviderInfo, Verb, VolumeSpec,
};

pub use agent::{Rule, RulesError};
pub use gate::Gate;
pub use script::Call;
use script::{Moment, Script};
pub use users::FakeConfig;
use world::World;

/// Name of the default template.
pub const TEMPLATE: &str = "base";

/// Capacity of the channel of flows.
const MAX_FLOWS: usize = 10_000;

/// Reason of an instance whose processes [`FakeProvider::vanish`] ended.
pub const VANISHED: &str = "its first process ended";

/// A provider in memory. Clones share their state.
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
    /// Receiver of the flows until it is taken.
    flows_out: Mutex<Option<mpsc::Receiver<Flow>>>,
}

impl Default for FakeProvider {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeProvider {
    /// Creates a provider without instances that has all capabilities and the host's clock.
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

    /// Uses the test's clock.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        self.shared.world.lock().clock = clock;
        self
    }

    /// Changes the provider's info, for example to fewer capabilities.
    #[must_use]
    pub fn with_info(mut self, change: impl FnOnce(&mut ProviderInfo)) -> Self {
        change(&mut self.info);
        self
    }

    /// Gives every instance this agent. Without one, the call `agent` is unsupported.
    #[must_use]
    pub fn with_agent(mut self, agent: AgentClient) -> Self {
        self.agent = Some(agent);
        self
    }

    /// Adds a scripted answer. It precedes all earlier ones.
    ///
    /// # Errors
    /// When `command` is not a valid regular expression.
    ///
    /// # Panics
    /// When the instances have no agents: only those of [`FakeProvider::for_users`] run commands.
    pub fn add_rule(&self, rule: Rule) -> Result<(), regex::Error> {
        let world = self.shared.world.lock();
        let agents = world.agents.as_ref().expect("the instances have agents");
        agents.add_rule(rule)
    }

    /// Makes the next call of `verb` fail before it does anything.
    pub fn fail_next(&self, verb: Verb, kind: ProviderErrorKind) {
        self.fail_nth(verb, 1, kind);
    }

    /// Makes the `nth` call of `verb` from now fail before it does anything. The next call has number 1.
    pub fn fail_nth(&self, verb: Verb, nth: usize, kind: ProviderErrorKind) {
        self.shared
            .script
            .lock()
            .fail(verb, nth, Moment::Before, kind);
    }

    /// Makes the next call of `verb` do its work and then fail, as if the answer were lost.
    pub fn lose_next_answer(&self, verb: Verb, kind: ProviderErrorKind) {
        self.shared.script.lock().fail(verb, 1, Moment::After, kind);
    }

    /// Sets whether the provider can be reached. While it cannot, all calls fail as `Unavailable`.
    pub fn set_reachable(&self, is_reachable: bool) {
        self.shared.script.lock().is_down = !is_reachable;
    }

    /// Holds calls of `verb` before they do anything, until the gate is released or dropped.
    pub fn hold(&self, verb: Verb) -> Gate {
        self.shared.script.lock().hold(verb, Moment::Before)
    }

    /// Holds calls of `verb` after their work and before their answer.
    pub fn hold_answer(&self, verb: Verb) -> Gate {
        self.shared.script.lock().hold(verb, Moment::After)
    }

    /// Delays every call of `verb`, by tokio's clock.
    pub fn delay(&self, verb: Verb, by: std::time::Duration) {
        self.shared.script.lock().delays.insert(verb, by);
    }

    /// All calls so far, failed ones included, in order of arrival.
    pub fn calls(&self) -> Vec<Call> {
        self.shared.script.lock().calls.clone()
    }

    /// Number of calls of `verb`.
    pub fn count(&self, verb: Verb) -> usize {
        let calls = &self.shared.script.lock().calls;
        calls.iter().filter(|call| call.verb == verb).count()
    }

    /// All instances, including foreign ones.
    pub fn instances(&self) -> Vec<Instance> {
        let world = self.shared.world.lock();
        world
            .instances
            .values()
            .map(|instance| instance.to_instance())
            .collect()
    }

    /// The spec that an instance was created from.
    pub fn spec_of(&self, id: &str) -> Option<InstanceSpec> {
        let world = self.shared.world.lock();
        world
            .instances
            .get(id)
            .map(|instance| instance.spec.clone())
    }

    /// Number of ready instances of the last `keep_ready`.
    pub fn ready(&self) -> usize {
        self.shared.world.lock().ready
    }

    /// All volumes.
    pub fn volumes(&self) -> Vec<VolumeSpec> {
        self.shared.world.lock().volumes.values().cloned().collect()
    }

    /// Ends an instance's processes without a request.
    pub fn vanish(&self, id: &str) {
        let mut world = self.shared.world.lock();
        if let Some(instance) = world.instances.get_mut(id)
            && instance.state.is_live()
        {
            instance.set_state(SandboxState::Stopped);
            instance.reason = Some(VANISHED.to_owned());
            world.grants.remove(id);
        }
    }

    /// Removes an instance with its files, as a lost disk does.
    pub fn lose(&self, id: &str) {
        self.shared.world.lock().remove(id);
    }

    /// Adds an instance of another installation: no call may list or change it.
    pub fn add_foreign_instance(&self) -> String {
        self.shared.world.lock().add(World::unowned_spec(), false)
    }

    /// Adds an orphan: an instance of a sandbox that has no row.
    pub fn add_orphan(&self, sandbox_id: SandboxId) -> String {
        let spec = InstanceSpec {
            sandbox_id,
            ..World::unowned_spec()
        };
        self.shared.world.lock().add(spec, true)
    }

    /// Reports a connection attempt of a sandbox.
    ///
    /// # Panics
    /// When the flows are not received and the channel is full.
    pub fn push_flow(&self, flow: Flow) {
        let pushed = self.shared.flows.try_send(flow);
        pushed.expect("the flows are received");
    }

    /// Sets the limitations that `set_network` returns from now on.
    pub fn set_unenforced(&self, limitations: Vec<String>) {
        self.shared.world.lock().unenforced = limitations;
    }

    /// The last network grant of an instance; `None` once its processes ended.
    pub fn grant(&self, id: &str) -> Option<NetworkGrant> {
        self.shared.world.lock().grants.get(id).cloned()
    }
}

impl fmt::Debug for FakeProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeProvider")
            .field("location", &self.info.location)
            .finish_non_exhaustive()
    }
}
