//! What there is in a fake place, and what each call makes of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use sandyard_core::SandboxState::{Paused, Running, Stopped};
use sandyard_core::network::NetworkGrant;
use sandyard_core::{Clock, Limits, NetworkPolicy, SandboxId, SandboxState};

use super::TEMPLATE;
use super::agent::{Inside, Machine};
use super::templates::{no_template, template};
use sandyard_provider::TemplateInfo;
use sandyard_provider::{Instance, InstanceSpec, UsagePoint, VolumeSpec};
use sandyard_provider::{ProviderError, ProviderErrorKind, Result};

/// Everything in the place.
#[derive(Debug)]
pub(super) struct World {
    pub(super) clock: Clock,
    pub(super) instances: BTreeMap<String, One>,
    pub(super) templates: BTreeMap<String, TemplateInfo>,
    pub(super) volumes: BTreeMap<String, VolumeSpec>,
    /// What each may reach, as last said.
    pub(super) grants: BTreeMap<String, NetworkGrant>,
    /// What of any policy cannot be enforced here.
    pub(super) unenforced: Vec<String>,
    pub(super) ready: usize,
    /// What instances have in them; none: nothing.
    pub(super) inside: Option<Inside>,
    /// What every id begins with.
    pub(super) prefix: String,
    /// How far a test's clock moves with every instance.
    pub(super) step_ms: i64,
    made: usize,
}

/// One instance.
#[derive(Debug)]
pub(super) struct One {
    id: String,
    pub(super) spec: InstanceSpec,
    /// Whether it was made through this provider.
    pub(super) is_ours: bool,
    pub(super) state: SandboxState,
    created_ms: i64,
    started_ms: i64,
    pub(super) reason: Option<String>,
    pub(super) machine: Option<Arc<Machine>>,
}

impl One {
    pub(super) fn instance(&self) -> Instance {
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

impl One {
    pub(super) fn set_state(&mut self, state: SandboxState) {
        self.state = state;
        if let Some(machine) = &self.machine {
            machine.become_state(state);
        }
    }

    /// What it used: the same at every five seconds since its last start, at most an hour back.
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
        let asked = |point: &UsagePoint| (from_ms..=to_ms).contains(&point.at_ms);
        points.filter(asked).collect()
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
            inside: None,
            prefix: "fake".to_owned(),
            step_ms: 0,
            made: 0,
        }
    }

    pub(super) fn spec_of_nobody() -> InstanceSpec {
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

    /// Puts a running instance there.
    pub(super) fn add(&mut self, spec: InstanceSpec, is_ours: bool) -> String {
        self.add_from(None, spec, is_ours)
    }

    /// Puts a running instance there, with the files of another.
    fn add_from(&mut self, source: Option<&Machine>, spec: InstanceSpec, is_ours: bool) -> String {
        self.made += 1;
        let id = format!("{}{:04}", self.prefix, self.made);
        self.clock.advance_ms(self.step_ms);
        let now_ms = self.clock.now_ms();
        let inside = self.inside.as_ref();
        let machine = inside.map(|inside| inside.make(&id, &spec, source, &self.clock));
        let one = One {
            id: id.clone(),
            spec,
            is_ours,
            state: Running,
            created_ms: now_ms,
            started_ms: now_ms,
            reason: None,
            machine,
        };
        self.instances.insert(id.clone(), one);
        id
    }

    pub(super) fn create(&mut self, spec: &InstanceSpec, most: &Limits) -> Result<Instance> {
        let invalid = |message: String| ProviderError::new(ProviderErrorKind::Invalid, message);
        spec.limits
            .check(most)
            .map_err(|error| invalid(error.to_string()))?;
        let is_odd = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
        if let Some(name) = spec.env.keys().find(is_odd) {
            return Err(invalid(format!(
                "`{name}` cannot be the name of a variable"
            )));
        }
        if !self.templates.contains_key(&spec.template) {
            return Err(no_template(&spec.template));
        }
        self.check_mounts(&spec.mounts)?;
        let id = self.add(spec.clone(), true);
        self.instance(&id)
    }

    pub(super) fn fork(&mut self, id: &str, spec: &InstanceSpec) -> Result<Instance> {
        let source = self.one(id)?;
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

    /// Takes an instance away with all that is in it.
    pub(super) fn remove(&mut self, id: &str) {
        self.grants.remove(id);
        let removed = self.instances.remove(id);
        if let Some(machine) = removed.and_then(|one| one.machine) {
            machine.become_state(Stopped);
        }
    }

    /// Moves to `wanted` from one of `from`; staying there succeeds.
    pub(super) fn become_state(
        &mut self,
        id: &str,
        wanted: SandboxState,
        from: &[SandboxState],
    ) -> Result<Instance> {
        let now_ms = self.clock.now_ms();
        let one = self.one(id)?;
        if one.state == wanted {
            return Ok(one.instance());
        }
        if !from.contains(&one.state) {
            return Err(ProviderError::new(
                ProviderErrorKind::Conflict,
                format!("`{id}` is {:?} and cannot become {wanted:?}", one.state).to_lowercase(),
            ));
        }
        if one.state == Stopped {
            one.started_ms = now_ms;
        }
        one.set_state(wanted);
        one.reason = None;
        Ok(one.instance())
    }

    pub(super) fn pause(&mut self, id: &str) -> Result<Instance> {
        self.become_state(id, Paused, &[Running])
    }

    pub(super) fn resume(&mut self, id: &str) -> Result<Instance> {
        self.become_state(id, Running, &[Paused])
    }

    pub(super) fn stop(&mut self, id: &str) -> Result<Instance> {
        let stopped = self.become_state(id, Stopped, &[Running, Paused])?;
        // What comes next through this way out would be other processes.
        self.grants.remove(id);
        Ok(stopped)
    }

    pub(super) fn start(&mut self, id: &str) -> Result<Instance> {
        self.become_state(id, Running, &[Stopped])
    }

    pub(super) fn instance(&mut self, id: &str) -> Result<Instance> {
        self.one(id).map(|one| one.instance())
    }

    /// An instance of ours.
    pub(super) fn one(&mut self, id: &str) -> Result<&mut One> {
        let one = self.instances.get_mut(id).filter(|one| one.is_ours);
        one.ok_or_else(|| {
            ProviderError::new(ProviderErrorKind::NotFound, format!("no instance `{id}`"))
        })
    }
}
