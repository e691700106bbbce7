//! The state of the fake, and how each call changes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use sandyard_core::SandboxState::{Paused, Running, Stopped};
use sandyard_core::network::NetworkGrant;
use sandyard_core::{Clock, Limits, NetworkPolicy, SandboxId, SandboxState};

use super::TEMPLATE;
use super::agent::{Agents, Machine};
use super::templates::{no_template, template};
use sandyard_provider::TemplateInfo;
use sandyard_provider::{Instance, InstanceSpec, UsagePoint, VolumeSpec};
use sandyard_provider::{ProviderError, ProviderErrorKind, Result};

/// All instances, templates and volumes.
#[derive(Debug)]
pub(super) struct World {
    pub(super) clock: Clock,
    pub(super) instances: BTreeMap<String, FakeInstance>,
    pub(super) templates: BTreeMap<String, TemplateInfo>,
    pub(super) volumes: BTreeMap<String, VolumeSpec>,
    /// Last network grant of each instance.
    pub(super) grants: BTreeMap<String, NetworkGrant>,
    /// Limitations that `set_network` returns.
    pub(super) unenforced: Vec<String>,
    pub(super) ready: usize,
    /// Agents of the instances; `None` when they have none.
    pub(super) agents: Option<Agents>,
    /// Prefix of all ids.
    pub(super) prefix: String,
    /// How far a manual clock advances with every new instance.
    pub(super) step_ms: i64,
    created_count: usize,
}

/// One instance.
#[derive(Debug)]
pub(super) struct FakeInstance {
    id: String,
    pub(super) spec: InstanceSpec,
    /// Whether it was created by this installation.
    pub(super) is_ours: bool,
    pub(super) state: SandboxState,
    created_ms: i64,
    started_ms: i64,
    pub(super) reason: Option<String>,
    pub(super) machine: Option<Arc<Machine>>,
}

impl FakeInstance {
    pub(super) fn to_instance(&self) -> Instance {
        Instance {
            id: self.id.clone(),
            sandbox_id: self.is_ours.then(|| self.spec.sandbox_id.clone()),
            state: self.state,
            template: self.spec.template.clone(),
            limits: self.spec.limits.clone(),
            created_ms: self.created_ms,
            started_ms: Some(self.started_ms),
            reason: self.reason.clone(),
            limitations: Vec::new(),
        }
    }
}

impl FakeInstance {
    pub(super) fn set_state(&mut self, state: SandboxState) {
        self.state = state;
        if let Some(machine) = &self.machine {
            machine.become_state(state);
        }
    }

    /// Constant usage, instance point per five seconds since the last start, at most instance hour.
    pub(super) fn usage_between(&self, from_ms: i64, to_ms: i64) -> Vec<UsagePoint> {
        let first_ms = self.started_ms;
        let hour = (to_ms.saturating_sub(first_ms) / 5000 - 720).max(0);
        let points = (hour..=hour + 720).map(|tick| UsagePoint {
            at_ms: first_ms + tick * 5000,
            cpu_percent: 1.0,
            memory_bytes: 1 << 20,
            cache_bytes: 0,
            disk_bytes: 0,
        });
        let is_requested = |point: &UsagePoint| (from_ms..=to_ms).contains(&point.at_ms);
        points.filter(is_requested).collect()
    }
}

impl World {
    pub(super) fn new() -> Self {
        let base = template(TEMPLATE, None, None);
        Self {
            clock: Clock::System,
            instances: BTreeMap::new(),
            templates: BTreeMap::from([(TEMPLATE.to_owned(), base)]),
            volumes: BTreeMap::new(),
            grants: BTreeMap::new(),
            unenforced: Vec::new(),
            ready: 0,
            agents: None,
            prefix: "fake".to_owned(),
            step_ms: 0,
            created_count: 0,
        }
    }

    pub(super) fn unowned_spec() -> InstanceSpec {
        InstanceSpec {
            sandbox_id: SandboxId::from_random([0; 20]),
            template: TEMPLATE.to_owned(),
            limits: Limits::default(),
            env: BTreeMap::new(),
            access_token: String::new(),
            hostname: None,
            network: NetworkPolicy::default(),
            mounts: Vec::new(),
            project: None,
            metadata: Default::default(),
            is_restricted: false,
        }
    }

    /// Adds a running instance.
    pub(super) fn add(&mut self, spec: InstanceSpec, is_ours: bool) -> String {
        self.add_from(None, spec, is_ours)
    }

    /// Adds a running instance with the files of another.
    fn add_from(&mut self, source: Option<&Machine>, spec: InstanceSpec, is_ours: bool) -> String {
        self.created_count += 1;
        let id = format!("{}{:04}", self.prefix, self.created_count);
        self.clock.advance_ms(self.step_ms);
        let now_ms = self.clock.now_ms();
        let agents = self.agents.as_ref();
        let machine = agents.map(|agents| agents.create_machine(&id, &spec, source, &self.clock));
        let instance = FakeInstance {
            id: id.clone(),
            spec,
            is_ours,
            state: Running,
            created_ms: now_ms,
            started_ms: now_ms,
            reason: None,
            machine,
        };
        self.instances.insert(id.clone(), instance);
        id
    }

    pub(super) fn create(&mut self, spec: &InstanceSpec, max_limits: &Limits) -> Result<Instance> {
        let invalid = |message: String| ProviderError::new(ProviderErrorKind::Invalid, message);
        spec.limits
            .check(max_limits)
            .map_err(|error| invalid(error.to_string()))?;
        let is_invalid_name = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
        if let Some(name) = spec.env.keys().find(is_invalid_name) {
            return Err(invalid(format!("`{name}` is not a valid variable name")));
        }
        if !self.templates.contains_key(&spec.template) {
            return Err(no_template(&spec.template));
        }
        self.check_mounts(&spec.mounts)?;
        let id = self.add(spec.clone(), true);
        self.instance(&id)
    }

    pub(super) fn fork(&mut self, id: &str, spec: &InstanceSpec) -> Result<Instance> {
        let source = self.find(id)?;
        let spec = InstanceSpec {
            template: source.spec.template.clone(),
            limits: source.spec.limits.clone(),
            mounts: source.spec.mounts.clone(),
            ..spec.clone()
        };
        let machine = source.machine.clone();
        let id = self.add_from(machine.as_deref(), spec, true);
        self.instance(&id)
    }

    /// Removes an instance with its files and grant.
    pub(super) fn remove(&mut self, id: &str) {
        self.grants.remove(id);
        let removed = self.instances.remove(id);
        if let Some(machine) = removed.and_then(|instance| instance.machine) {
            machine.become_state(Stopped);
        }
    }

    /// Changes the state to `target` from one of `from`. Succeeds if it is `target` already.
    pub(super) fn become_state(
        &mut self,
        id: &str,
        target: SandboxState,
        from: &[SandboxState],
    ) -> Result<Instance> {
        let now_ms = self.clock.now_ms();
        let instance = self.find(id)?;
        if instance.state == target {
            return Ok(instance.to_instance());
        }
        if !from.contains(&instance.state) {
            return Err(ProviderError::new(
                ProviderErrorKind::Conflict,
                format!(
                    "`{id}` is {:?} and cannot become {target:?}",
                    instance.state
                )
                .to_lowercase(),
            ));
        }
        if instance.state == Stopped {
            instance.started_ms = now_ms;
        }
        instance.set_state(target);
        instance.reason = None;
        Ok(instance.to_instance())
    }

    pub(super) fn pause(&mut self, id: &str) -> Result<Instance> {
        self.become_state(id, Paused, &[Running])
    }

    pub(super) fn resume(&mut self, id: &str) -> Result<Instance> {
        self.become_state(id, Running, &[Paused])
    }

    pub(super) fn stop(&mut self, id: &str) -> Result<Instance> {
        let stopped = self.become_state(id, Stopped, &[Running, Paused])?;
        // The grant was for the processes that ended.
        self.grants.remove(id);
        Ok(stopped)
    }

    pub(super) fn start(&mut self, id: &str) -> Result<Instance> {
        self.become_state(id, Running, &[Stopped])
    }

    pub(super) fn instance(&mut self, id: &str) -> Result<Instance> {
        self.find(id).map(|instance| instance.to_instance())
    }

    /// An instance of this installation.
    pub(super) fn find(&mut self, id: &str) -> Result<&mut FakeInstance> {
        let instance = self
            .instances
            .get_mut(id)
            .filter(|instance| instance.is_ours);
        instance.ok_or_else(|| {
            ProviderError::new(ProviderErrorKind::NotFound, format!("no instance `{id}`"))
        })
    }
}
