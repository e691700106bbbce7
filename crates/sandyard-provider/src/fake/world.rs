//! What there is in a fake place, and what each call makes of it.

use std::collections::BTreeMap;

use sandyard_core::SandboxState::{Paused, Running, Stopped};
use sandyard_core::network::NetworkGrant;
use sandyard_core::{Clock, Limits, NetworkPolicy, SandboxId, SandboxState};

use super::TEMPLATE;
use crate::instance::{Change, Instance, InstanceSpec, UsagePoint, VolumeSpec};
use crate::provider::TemplateInfo;
use crate::{ProviderError, ProviderErrorKind, Result};

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
    pub(super) changes: Vec<Change>,
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
            lacks: Vec::new(),
        }
    }
}

impl One {
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
        }
    }

    /// Puts a running instance there.
    pub(super) fn add(&mut self, spec: InstanceSpec, is_ours: bool) -> String {
        self.made += 1;
        let id = format!("fake{:04}", self.made);
        let now_ms = self.clock.now_ms();
        let one = One {
            id: id.clone(),
            spec,
            is_ours,
            state: Running,
            created_ms: now_ms,
            started_ms: now_ms,
            reason: None,
            changes: Vec::new(),
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
        let id = self.add(spec, true);
        self.instance(&id)
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
        one.state = wanted;
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

    pub(super) fn add_template(
        &mut self,
        name: &str,
        size_bytes: Option<u64>,
    ) -> Result<TemplateInfo> {
        let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if name.is_empty() || name.starts_with('.') || !name.bytes().all(is_fine) {
            return Err(ProviderError::new(
                ProviderErrorKind::Invalid,
                format!("`{name}` cannot be the name of a template"),
            ));
        }
        if self.templates.contains_key(name) {
            return Err(ProviderError::new(
                ProviderErrorKind::Conflict,
                format!("template `{name}` exists"),
            ));
        }
        let made = template(name, Some(self.clock.now_ms()), size_bytes);
        self.templates.insert(name.to_owned(), made.clone());
        Ok(made)
    }

    pub(super) fn remove_template(&mut self, name: &str) -> Result<()> {
        if name == TEMPLATE {
            return Err(ProviderError::new(
                ProviderErrorKind::Invalid,
                format!("template `{name}` is always there"),
            ));
        }
        let removed = self.templates.remove(name);
        removed.map(drop).ok_or_else(|| no_template(name))
    }
}

fn template(name: &str, created_ms: Option<i64>, size_bytes: Option<u64>) -> TemplateInfo {
    TemplateInfo {
        name: name.to_owned(),
        created_ms,
        size_bytes,
        note: None,
    }
}

fn no_template(name: &str) -> ProviderError {
    ProviderError::new(ProviderErrorKind::NotFound, format!("no template `{name}`"))
}
