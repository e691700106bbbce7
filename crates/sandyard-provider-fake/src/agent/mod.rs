//! What is inside a fake instance: an agent that keeps files in memory and runs what [`shell`] knows, always with the same
//! result. It answers as the real one does, over HTTP on connections in memory.

mod account;
mod call;
mod disk;
mod door;
mod files;
mod filesystem;
mod machine;
mod multipart;
mod process;
mod query;
mod route;
mod rules;
mod shell;
mod watch;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use sandyard_core::{Clock, Limits};

use disk::tree::Tree;
use disk::{Disk, Shared, base};
use machine::Settings;
use rules::Rules;
use sandyard_provider::VOLUME_PATH;
use sandyard_provider::{InstanceSpec, VolumeSpec};

pub(super) use door::client;
pub(super) use machine::Machine;
pub use rules::RulesError;

/// Most bytes that one disk takes, whatever its limit says: it is memory.
const MAX_DISK_BYTES: u64 = 256 << 20;

/// What instances are made of.
#[derive(Debug)]
pub(super) struct Inside {
    rules: Arc<Rules>,
    /// What templates hold that are not the first one.
    templates: BTreeMap<String, Tree>,
    volumes: BTreeMap<String, Shared>,
}

impl Inside {
    pub(super) fn new(rules: Option<&Path>) -> Result<Self, RulesError> {
        let rules = rules.map(Rules::load).transpose()?.unwrap_or_default();
        Ok(Self {
            rules: Arc::new(rules),
            templates: BTreeMap::new(),
            volumes: BTreeMap::new(),
        })
    }

    /// The inside of a new instance: from another one's files, or from its template's.
    pub(super) fn make(
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
        let room = spec.limits.disk_bytes.min(MAX_DISK_BYTES);
        let disk = Disk::new(root.with_room(room), template, mounts.collect());
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

    /// Keeps an instance's files as a template.
    pub(super) fn keep(&mut self, name: &str, machine: &Machine) {
        let (now, _) = machine.disk.trees();
        self.templates.insert(name.to_owned(), now);
    }

    pub(super) fn forget(&mut self, template: &str) {
        self.templates.remove(template);
    }

    pub(super) fn add_volume(&mut self, volume: &VolumeSpec) {
        let most = volume.size_bytes.min(MAX_DISK_BYTES);
        let empty = || Arc::new(Mutex::new(Tree::new(most)));
        self.volumes.entry(volume.id.clone()).or_insert_with(empty);
    }

    pub(super) fn remove_volume(&mut self, id: &str) {
        self.volumes.remove(id);
    }

    /// An agent's view of a volume.
    pub(super) fn open_volume(&self, id: &str, clock: &Clock) -> Option<Arc<Machine>> {
        let mounts = vec![(VOLUME_PATH.to_owned(), self.volumes.get(id)?.clone())];
        let disk = Disk::new(base().with_room(MAX_DISK_BYTES), base(), mounts);
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
