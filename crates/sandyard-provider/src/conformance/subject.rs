//! The provider under test, and everything a check has made of it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use sandyard_agent_client::wire::process::ProcessConfig;
use sandyard_agent_client::{AgentClient, RunOptions};
use sandyard_core::{Clock, NetworkPolicy, SandboxId};

use super::Options;
use crate::{AgentAddress, Instance, InstanceSpec, Mount, Provider, VolumeSpec};
use crate::{ProviderErrorKind, Result};

/// Why a check did not go through.
pub(super) enum Trouble {
    /// It needs something that is not there, and that no capability speaks of.
    CannotBeTried,
    /// Something does not hold.
    Wrong(String),
}

/// How a check ends.
pub(super) type Done<T = ()> = Result<T, Trouble>;

/// The token of every instance the suite makes.
const TOKEN: &str = "conformance";

/// The provider under test.
pub(super) struct Subject {
    pub(super) provider: Arc<dyn Provider>,
    pub(super) options: Options,
    sandboxes: Mutex<Vec<SandboxId>>,
    templates: Mutex<Vec<String>>,
    volumes: Mutex<Vec<String>>,
}

impl Subject {
    pub(super) fn new(provider: Arc<dyn Provider>, options: Options) -> Self {
        Self {
            provider,
            options,
            sandboxes: Mutex::default(),
            templates: Mutex::default(),
            volumes: Mutex::default(),
        }
    }

    /// What to make an instance from, for a sandbox nobody else has.
    pub(super) fn spec(&self) -> InstanceSpec {
        let name = unique("c");
        let sandbox_id: SandboxId = name.parse().expect("letters and digits");
        lock(&self.sandboxes).push(sandbox_id.clone());
        InstanceSpec {
            sandbox_id,
            template: self.provider.info().default_template.clone(),
            limits: self.options.limits.clone(),
            env: BTreeMap::from([("WHO".to_owned(), "conformance".to_owned())]),
            access_token: TOKEN.to_owned(),
            hostname: None,
            network: NetworkPolicy::default(),
            mounts: Vec::new(),
            project: None,
            metadata: Default::default(),
            is_restricted: false,
        }
    }

    /// The name of a template nobody else has.
    pub(super) fn template_name(&self) -> String {
        let name = unique("conformance-");
        lock(&self.templates).push(name.clone());
        name
    }

    /// Makes a volume nobody else has.
    pub(super) async fn volume(&self) -> Done<String> {
        let id = unique("v");
        lock(&self.volumes).push(id.clone());
        let spec = VolumeSpec {
            id: id.clone(),
            size_bytes: 32 << 20,
        };
        works("create_volume", self.provider.create_volume(&spec).await)?;
        Ok(id)
    }

    /// What to make an instance from that has these volumes, each with its path.
    pub(super) fn spec_with(&self, mounts: &[(&str, &str)]) -> InstanceSpec {
        let mount = |(volume, path): &(&str, &str)| Mount {
            volume: (*volume).to_owned(),
            path: (*path).to_owned(),
        };
        InstanceSpec {
            mounts: mounts.iter().map(mount).collect(),
            ..self.spec()
        }
    }

    /// Makes an instance.
    pub(super) async fn create(&self) -> Done<Instance> {
        let spec = self.spec();
        works("create", self.provider.create(&spec).await)
    }

    /// What is known of an instance that must be there.
    pub(super) async fn inspect(&self, id: &str) -> Done<Instance> {
        let found = works("inspect", self.provider.inspect(id).await)?;
        found.ok_or_else(|| Trouble::Wrong(format!("`{id}` is not there")))
    }

    /// Everything that was made for a sandbox.
    pub(super) async fn made_for(&self, sandbox_id: &SandboxId) -> Done<Vec<Instance>> {
        let all = works("list", self.provider.list().await)?;
        let made = |one: &Instance| one.sandbox_id.as_ref() == Some(sandbox_id);
        Ok(all.into_iter().filter(made).collect())
    }

    /// The agent of an instance, where there are agents.
    pub(super) async fn agent(&self, id: &str) -> Done<AgentClient> {
        let address = AgentAddress {
            id: id.to_owned(),
            access_token: TOKEN.to_owned(),
        };
        match self.provider.agent(&address).await {
            Err(error) if error.kind == ProviderErrorKind::Unsupported => {
                Err(Trouble::CannotBeTried)
            }
            other => works("agent", other),
        }
    }

    /// What a shell line in an instance prints.
    pub(super) async fn sh(&self, id: &str, line: &str) -> Done<String> {
        printed(&self.agent(id).await?, line).await
    }

    /// Removes whatever was made, and sees that it is gone.
    pub(super) async fn clean_up(&self) -> Result<(), String> {
        let sandboxes = std::mem::take(&mut *lock(&self.sandboxes));
        let say = |error: crate::ProviderError| error.to_string();
        let is_mine = |one: &Instance| {
            let mut ids = one.sandbox_id.iter();
            ids.any(|id| sandboxes.contains(id))
        };
        for one in self.provider.list().await.map_err(say)? {
            if is_mine(&one) {
                self.provider.delete(&one.id).await.map_err(say)?;
            }
        }
        let templates = std::mem::take(&mut *lock(&self.templates));
        for name in templates {
            match self.provider.remove_template(&name).await {
                Ok(()) => {}
                // Never made, or removed by the check itself.
                Err(error)
                    if matches!(
                        error.kind,
                        ProviderErrorKind::NotFound | ProviderErrorKind::Unsupported
                    ) => {}
                Err(error) => return Err(say(error)),
            }
        }
        let volumes = std::mem::take(&mut *lock(&self.volumes));
        for id in volumes {
            self.provider.delete_volume(&id).await.map_err(say)?;
        }
        let left = self.provider.list().await.map_err(say)?;
        match left.iter().find(|one| is_mine(one)) {
            Some(one) => Err(format!("`{}` is still there", one.id)),
            None => Ok(()),
        }
    }
}

/// What a shell line prints where that agent is.
pub(super) async fn printed(agent: &AgentClient, line: &str) -> Done<String> {
    let process = ProcessConfig {
        cmd: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), line.to_owned()],
        ..ProcessConfig::default()
    };
    let ran = agent.run(process, &RunOptions::default()).await;
    let output = works("a command", ran)?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.trim_end().to_owned())
}

/// Says that a call must succeed.
pub(super) fn works<T, E: std::error::Error>(call: &str, result: Result<T, E>) -> Done<T> {
    result.map_err(|error| {
        let mut text = format!("{call}: {error}");
        let mut cause = error.source();
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        Trouble::Wrong(text)
    })
}

/// Says that a call must fail, and how.
pub(super) fn fails<T: Debug>(call: &str, kind: ProviderErrorKind, result: Result<T>) -> Done {
    match result {
        Err(error) if error.kind == kind => Ok(()),
        other => Err(Trouble::Wrong(format!(
            "{call}: {kind:?} expected, not {other:?}"
        ))),
    }
}

/// Says that two things must be the same.
pub(super) fn same<T: Debug + PartialEq>(what: &str, found: T, expected: T) -> Done {
    if found == expected {
        return Ok(());
    }
    Err(Trouble::Wrong(format!(
        "{what}: {expected:?} expected, not {found:?}"
    )))
}

fn unique(prefix: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    format!(
        "{prefix}{}x{}x{number}",
        std::process::id(),
        Clock::System.now_ms()
    )
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
