//! Instances: sandboxes as their provider knows them.

use std::collections::BTreeMap;
use std::fmt;

use async_trait::async_trait;
use sandyard_agent_client::AgentClient;
use sandyard_core::network::NetworkGrant;
use sandyard_core::{Limits, NetworkPolicy, SandboxId, SandboxState};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::provider::Result;
use crate::volumes::Mount;

/// The life of a provider's instances.
#[async_trait]
pub trait Instances: Send + Sync + 'static {
    /// Creates a running instance. After an error nothing is left behind, except after `TimedOut` and `Unavailable`: then an
    /// instance may exist that carries `spec.sandbox_id` and is found by [`Instances::list`].
    async fn create(&self, spec: &InstanceSpec) -> Result<Instance>;

    /// Creates a running instance from the current files of another; ignores the template and the limits of `spec`. Requires
    /// [`can_fork`](crate::Capabilities::can_fork).
    async fn fork(&self, id: &str, spec: &InstanceSpec) -> Result<Instance>;

    /// Current state of one instance; `None` when it does not exist.
    async fn inspect(&self, id: &str) -> Result<Option<Instance>>;

    /// All instances that this installation created with this provider. Instances of other installations and tools are left out.
    async fn list(&self) -> Result<Vec<Instance>>;

    /// Freezes an instance and keeps its memory. Requires [`can_pause`](crate::Capabilities::can_pause). Commands go on
    /// afterwards; clients that read their output may be disconnected meanwhile.
    async fn pause(&self, id: &str) -> Result<Instance>;

    /// Thaws a paused instance.
    async fn resume(&self, id: &str) -> Result<Instance>;

    /// Ends the processes of an instance and keeps its files. Requires [`can_stop`](crate::Capabilities::can_stop).
    async fn stop(&self, id: &str) -> Result<Instance>;

    /// Starts a stopped instance from its files.
    async fn start(&self, id: &str) -> Result<Instance>;

    /// Removes an instance and everything it holds. Succeeds only when nothing is left.
    async fn delete(&self, id: &str) -> Result<()>;

    /// Lists files that changed since the template. Requires [`can_diff`](crate::Capabilities::can_diff).
    async fn diff(&self, id: &str) -> Result<Vec<Change>>;

    /// Returns a client of an instance's agent. Nothing is dialled before its first call.
    async fn agent(&self, instance: &AgentAddress) -> Result<AgentClient>;

    /// Opens an instance's egress, or changes what it may reach from now on. Returns which parts of the policy this provider
    /// cannot enforce, one sentence each; empty when it enforces all of it. An instance without a grant reaches nothing, where
    /// the provider can enforce that.
    async fn set_network(&self, id: &str, grant: &NetworkGrant) -> Result<Vec<String>>;
}

/// An instance to create.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceSpec {
    /// The sandbox it is for. The provider labels the instance with it, so that every instance can be found again.
    pub sandbox_id: SandboxId,
    /// The template it starts from.
    pub template: String,
    /// How much it may use.
    pub limits: Limits,
    /// Environment variables of every command in it. They may be secrets and are never logged.
    pub env: BTreeMap<String, String>,
    /// The token that the agent requires of callers from inside or through a port.
    pub access_token: String,
    /// Its host name; `None` for the instance's id.
    pub hostname: Option<String>,
    /// What it may reach, for providers that set this at creation; [`Instances::set_network`] follows in any case.
    #[serde(default)]
    pub network: NetworkPolicy,
    /// Volumes mounted in it.
    #[serde(default)]
    pub mounts: Vec<Mount>,
    /// The project it is for. Where the operator maps projects to folders, the folder of that name is its `/workspace`.
    pub project: Option<String>,
    /// The user's metadata, for providers that show it in their own console. Truncated to what fits there.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    /// Whether it may start only from the default template and from templates of this installation.
    #[serde(default)]
    pub is_restricted: bool,
}

impl fmt::Debug for InstanceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InstanceSpec")
            .field("sandbox_id", &self.sandbox_id)
            .field("template", &self.template)
            .field("limits", &self.limits)
            .field("env", &self.env.keys())
            .finish_non_exhaustive()
    }
}

/// An instance as its provider reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// The provider's id of it.
    pub id: String,
    /// The sandbox it was created for.
    pub sandbox_id: Option<SandboxId>,
    /// Its current state.
    pub state: SandboxState,
    /// The template it was created from.
    pub template: String,
    /// How much it may use.
    pub limits: Limits,
    /// When it was created, in milliseconds since the Unix epoch.
    pub created_ms: i64,
    /// When its first process last started, in milliseconds since the Unix epoch.
    pub started_ms: Option<i64>,
    /// Why it is not running although nobody stopped it; while it runs, what its start repaired.
    pub reason: Option<String>,
    /// What this provider could not give it, one sentence each.
    #[serde(rename = "lacks", alias = "limitations")]
    pub limitations: Vec<String>,
}

/// How a file differs from the template's: `added`, `modified` (in content or metadata) or `deleted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// The template does not have it.
    Added,
    /// The template has it with other content or metadata.
    Modified,
    /// Only the template has it.
    Deleted,
}

/// File that differs from the template's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Change {
    /// Absolute path of the file inside the sandbox.
    pub path: String,
    /// Kind of change.
    pub kind: ChangeKind,
}

/// What a client needs to reach an agent.
#[derive(Clone, PartialEq, Eq)]
pub struct AgentAddress {
    /// The instance's id.
    pub id: String,
    /// The token its agent was given.
    pub access_token: String,
}

sandyard_core::debug_fields!(AgentAddress: id);
