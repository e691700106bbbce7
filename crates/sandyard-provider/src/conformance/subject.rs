//! The provider under test, and everything that a check created.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use sandyard_agent_client::wire::process::ProcessConfig;
use sandyard_agent_client::{AgentClient, RunOptions};
use sandyard_core::{Clock, NetworkPolicy, SandboxId};

use super::Options;
use crate::{AgentAddress, Instance, InstanceSpec, Mount, Provider, VolumeSpec};
use crate::{ProviderErrorKind, Result};

/// Why a check did not pass.
pub(super) enum CheckError {
    /// It needs something that the provider does not have and that is not a capability.
    NotApplicable,
    /// The provider does not behave as it must.
    Failed(String),
}

/// Result of a check or of a step of it.
pub(super) type CheckResult<T = ()> = Result<T, CheckError>;

/// Token of every instance that the suite creates.
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

    /// The spec of an instance of a new sandbox.
    pub(super) fn spec(&self) -> InstanceSpec {
        let name = unique("c");
        let sandbox_id: SandboxId = name.parse().expect("letters and digits");
        self.sandboxes.lock().push(sandbox_id.clone());
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

    /// A new name for a template.
    pub(super) fn template_name(&self) -> String {
        let name = unique("conformance-");
        self.templates.lock().push(name.clone());
        name
    }

    /// Creates a volume with a new name.
    pub(super) async fn volume(&self) -> CheckResult<String> {
        let id = unique("v");
        self.volumes.lock().push(id.clone());
        let spec = VolumeSpec {
            id: id.clone(),
            size_bytes: 32 << 20,
        };
        works("create_volume", self.provider.create_volume(&spec).await)?;
        Ok(id)
    }

    /// The spec of an instance that mounts volumes, each with its path.
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

    /// Creates an instance.
    pub(super) async fn create(&self) -> CheckResult<Instance> {
        let spec = self.spec();
        works("create", self.provider.create(&spec).await)
    }

    /// Inspects an instance that must exist.
    pub(super) async fn inspect(&self, id: &str) -> CheckResult<Instance> {
        let found = works("inspect", self.provider.inspect(id).await)?;
        found.ok_or_else(|| CheckError::Failed(format!("`{id}` does not exist")))
    }

    /// Requires that these are the listed instances of a sandbox.
    pub(super) async fn lists(&self, id: &SandboxId, expected: &[Instance]) -> CheckResult {
        same("list", &self.instances_of(id).await?[..], expected)
    }

    /// All instances of a sandbox.
    pub(super) async fn instances_of(&self, sandbox_id: &SandboxId) -> CheckResult<Vec<Instance>> {
        let all = works("list", self.provider.list().await)?;
        let is_match = |instance: &Instance| instance.sandbox_id.as_ref() == Some(sandbox_id);
        Ok(all.into_iter().filter(is_match).collect())
    }

    /// The agent of an instance, if the provider has agents.
    pub(super) async fn agent(&self, id: &str) -> CheckResult<AgentClient> {
        let address = AgentAddress {
            id: id.to_owned(),
            access_token: TOKEN.to_owned(),
        };
        match self.provider.agent(&address).await {
            Err(error) if error.kind == ProviderErrorKind::Unsupported => {
                Err(CheckError::NotApplicable)
            }
            other => works("agent", other),
        }
    }

    /// Runs a shell line in an instance and returns its output.
    pub(super) async fn sh(&self, id: &str, line: &str) -> CheckResult<String> {
        printed(&self.agent(id).await?, line).await
    }

    /// Removes everything that was created, and checks that it no longer exists.
    pub(super) async fn clean_up(&self) -> Result<(), String> {
        let sandboxes = std::mem::take(&mut *self.sandboxes.lock());
        let message = |error: crate::ProviderError| error.to_string();
        let is_owned = |instance: &Instance| {
            let mut ids = instance.sandbox_id.iter();
            ids.any(|id| sandboxes.contains(id))
        };
        for instance in self.provider.list().await.map_err(message)? {
            if is_owned(&instance) {
                self.provider.delete(&instance.id).await.map_err(message)?;
            }
        }
        let templates = std::mem::take(&mut *self.templates.lock());
        for name in templates {
            match self.provider.remove_template(&name).await {
                Ok(()) => {}
                // Never created, or removed by the check itself.
                Err(error)
                    if matches!(
                        error.kind,
                        ProviderErrorKind::NotFound | ProviderErrorKind::Unsupported
                    ) => {}
                Err(error) => return Err(message(error)),
            }
        }
        let volumes = std::mem::take(&mut *self.volumes.lock());
        for id in volumes {
            self.provider.delete_volume(&id).await.map_err(message)?;
        }
        let remaining = self.provider.list().await.map_err(message)?;
        match remaining.iter().find(|instance| is_owned(instance)) {
            Some(instance) => Err(format!("`{}` still exists", instance.id)),
            None => Ok(()),
        }
    }
}

/// Runs a shell line with an agent and returns its output.
pub(super) async fn printed(agent: &AgentClient, line: &str) -> CheckResult<String> {
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

/// Requires that a call succeeds.
pub(super) fn works<T, E: std::error::Error>(call: &str, result: Result<T, E>) -> CheckResult<T> {
    result.map_err(|error| {
        let mut text = format!("{call}: {error}");
        let mut cause = error.source();
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        CheckError::Failed(text)
    })
}

/// Requires that a call fails with a kind of error.
pub(super) fn fails<T: Debug>(
    call: &str,
    kind: ProviderErrorKind,
    result: Result<T>,
) -> CheckResult {
    match result {
        Err(error) if error.kind == kind => Ok(()),
        other => Err(CheckError::Failed(format!(
            "{call}: {kind:?} expected, not {other:?}"
        ))),
    }
}

/// Requires that two values are equal.
pub(super) fn same<T: Debug + PartialEq>(what: &str, actual: T, expected: T) -> CheckResult {
    if actual == expected {
        return Ok(());
    }
    Err(CheckError::Failed(format!(
        "{what}: {expected:?} expected, not {actual:?}"
    )))
}

/// Requires that a condition is true.
pub(super) fn holds(condition: &str, is_true: bool) -> CheckResult {
    is_true.then_some(()).ok_or_else(|| {
        let message = format!("this must be true: {condition}");
        CheckError::Failed(message)
    })
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
