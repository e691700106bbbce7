//! The agent of a fake instance: it keeps files in memory and answers [`commands`] by rules, always with the same result. It
//! speaks the protocol of the real agent, HTTP, over streams in memory.

mod account;
mod call;
mod commands;
mod disk;
mod endpoint;
mod files;
mod filesystem;
mod machine;
mod multipart;
mod process;
mod route;
mod rules;
mod watch;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use sandyard_core::{Clock, Limits};

use disk::tree::Tree;
use disk::{Disk, SharedTree, base};
use machine::Settings;
use rules::Rules;
use sandyard_provider::VOLUME_PATH;
use sandyard_provider::{InstanceSpec, VolumeSpec};
use sandyard_wire::ConnectError;

pub(super) use endpoint::client;
pub(super) use machine::Machine;
pub use rules::{Rule, RulesError};

/// Result of a call.
type Result<T, E = ConnectError> = std::result::Result<T, E>;

/// Maximum size of a disk in bytes, whatever its limit: it is in memory.
const MAX_DISK_BYTES: u64 = 256 << 20;

/// What the agents of all instances share: rules, and the files of templates and volumes.
#[derive(Debug)]
pub(super) struct Agents {
    rules: Arc<Rules>,
    /// Files of templates other than the default one.
    templates: BTreeMap<String, Tree>,
    volumes: BTreeMap<String, SharedTree>,
}

impl Agents {
    pub(super) fn new(rules: Option<&Path>) -> Result<Self, RulesError> {
        let rules = rules.map(Rules::load).transpose()?.unwrap_or_default();
        Ok(Self {
            rules: Arc::new(rules),
            templates: BTreeMap::new(),
            volumes: BTreeMap::new(),
        })
    }

    /// The machine of a new instance, with the files of `source` or of its template.
    pub(super) fn create_machine(
        &self,
        id: &str,
        spec: &InstanceSpec,
        source: Option<&Machine>,
        clock: &Clock,
    ) -> Arc<Machine> {
        let (root, template) = match source {
            Some(source) => source.disk.trees(),
            None => {
                let template = self
                    .templates
                    .get(&spec.template)
                    .cloned()
                    .unwrap_or_else(base);
                (template.clone(), template)
            }
        };
        let mounts = spec.mounts.iter().filter_map(|mount| {
            let path = account::resolve(&mount.path, "/", "/").ok()?;
            Some((path, self.volumes.get(&mount.volume)?.clone()))
        });
        let capacity = spec.limits.disk_bytes.min(MAX_DISK_BYTES);
        let disk = Disk::new(root.with_capacity(capacity), template, mounts.collect());
        let settings = Settings {
            env: spec.env.clone(),
            access_token: spec.access_token.clone(),
            default_user: "user".to_owned(),
            default_workdir: None,
            hostname: spec.hostname.clone().unwrap_or_else(|| id.to_owned()),
        };
        let machine = Machine::new(
            disk,
            self.rules.clone(),
            clock.clone(),
            spec.limits.clone(),
            settings,
        );
        Arc::new(machine)
    }

    pub(super) fn add_rule(&self, rule: Rule) -> Result<(), regex::Error> {
        self.rules.add(rule)
    }

    /// Saves an instance's files as a template.
    pub(super) fn save_template(&mut self, name: &str, machine: &Machine) {
        let (files, _) = machine.disk.trees();
        self.templates.insert(name.to_owned(), files);
    }

    pub(super) fn remove_template(&mut self, template: &str) {
        self.templates.remove(template);
    }

    pub(super) fn add_volume(&mut self, volume: &VolumeSpec) {
        let capacity = volume.size_bytes.min(MAX_DISK_BYTES);
        let empty = || Arc::new(Mutex::new(Tree::new(capacity)));
        self.volumes.entry(volume.id.clone()).or_insert_with(empty);
    }

    pub(super) fn remove_volume(&mut self, id: &str) {
        self.volumes.remove(id);
    }

    /// An agent's view of a volume.
    pub(super) fn open_volume(&self, id: &str, clock: &Clock) -> Option<Arc<Machine>> {
        let mounts = vec![(VOLUME_PATH.to_owned(), self.volumes.get(id)?.clone())];
        let disk = Disk::new(base().with_capacity(MAX_DISK_BYTES), base(), mounts);
        let settings = Settings {
            env: BTreeMap::new(),
            access_token: String::new(),
            default_user: "root".to_owned(),
            default_workdir: None,
            hostname: "volume".to_owned(),
        };
        let limits = Limits::default();
        Some(Arc::new(Machine::new(
            disk,
            self.rules.clone(),
            clock.clone(),
            limits,
            settings,
        )))
    }
}
