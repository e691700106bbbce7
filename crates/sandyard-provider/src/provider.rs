//! The contract between the lifecycle service and whatever runs sandboxes.

use std::fmt::Debug;
use std::pin::Pin;

use async_trait::async_trait;
use sandyard_agent_client::AgentClient;
use sandyard_core::Limits;
use sandyard_core::network::{Flow, NetworkGrant};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncRead;
use tokio::sync::mpsc;

use crate::error::{ProviderError, ProviderErrorKind};
use crate::instance::{Change, Instance, InstanceSpec, Ready, Usage, UsagePoint, VolumeSpec};

/// Result of a provider's work.
pub type Result<T, E = ProviderError> = std::result::Result<T, E>;

/// An archive on its way in.
pub type ArchiveReader = Pin<Box<dyn AsyncRead + Send>>;

/// What a provider can do. The service asks before it calls, and answers `unsupported` itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Capabilities {
    /// Freezing with the memory kept.
    pub can_pause: bool,
    /// Ending the processes and keeping the files.
    pub can_stop: bool,
    /// Keeping a sandbox's files as a template.
    pub can_snapshot: bool,
    /// Another sandbox from the files of a live one.
    pub can_fork: bool,
    /// Listing what changed since the template.
    pub can_diff: bool,
    /// Listing templates, and removing those that were made here.
    pub can_manage_templates: bool,
    /// Making templates from archives.
    #[serde(default)]
    pub can_import_templates: bool,
    /// Sandboxes start from templates of a registry or cloud too, by the names they have there.
    #[serde(default)]
    pub has_external_templates: bool,
    /// Memory, processor, process and disk limits are enforced.
    pub can_limit: bool,
    /// Volumes: folders that outlive sandboxes.
    #[serde(default)]
    pub can_mount: bool,
    /// Telling what was used of late, and not only what is used now.
    #[serde(default)]
    pub can_recall_usage: bool,
}

/// How a provider is, as seen by who calls it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// Whether calls are let through: not while it has failed several times in a row, until it answers again.
    pub is_reachable: bool,
    /// When that last changed.
    pub since_ms: Option<i64>,
    /// Failures in a row so far.
    pub failures: u32,
    /// What the last of them said.
    pub reason: Option<String>,
    /// Calls under way.
    pub calls: usize,
}

impl Default for Condition {
    fn default() -> Self {
        Self {
            is_reachable: true,
            since_ms: None,
            failures: 0,
            reason: None,
            calls: 0,
        }
    }
}

/// What a provider tells about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderInfo {
    /// Its name in settings and answers: `embedded`, `docker`, …
    pub name: String,
    /// Names the place its sandboxes are in: two servers that report the same location reach the same sandboxes.
    pub location: String,
    /// What it can do.
    pub capabilities: Capabilities,
    /// What a sandbox gets when its maker asks for nothing.
    pub default_limits: Limits,
    /// The most a caller may ask for.
    pub max_limits: Limits,
    /// What a sandbox starts from when its maker does not say.
    pub default_template: String,
    /// What this place cannot give any sandbox, in words.
    pub lacks: Vec<String>,
}

/// What can be told of a template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateInfo {
    /// Its name.
    pub name: String,
    /// When it was made.
    pub created_ms: Option<i64>,
    /// How many bytes it takes.
    pub size_bytes: Option<u64>,
    /// What else there is to say about it.
    pub note: Option<String>,
    /// Whether it is there for this installation; not so what others keep in the same place, such as images of Docker's.
    #[serde(default)]
    pub is_ours: bool,
}

/// Runs sandboxes.
///
/// Called by the lifecycle service alone, which never has two calls under way for one instance that change it; reads may
/// come at any time. Dropping a future may leave its work half done or done: the caller asks [`Provider::inspect`] or
/// [`Provider::list`] before it decides anything, and every call except `create` and `fork` may be repeated.
///
/// # Errors
///
/// - `NotFound`: no such instance or template. Deleting a missing instance succeeds.
/// - `Conflict`: the instance's state does not allow it. Pausing the paused and resuming the running succeed.
/// - `Invalid`, `NoCapacity`, `Unsupported`, `TimedOut`, `Unavailable`, `Failed`: see [`ProviderErrorKind`].
///
/// [`ProviderErrorKind`]: crate::ProviderErrorKind
#[async_trait]
pub trait Provider: Debug + Send + Sync + 'static {
    /// What it is. Cheap; known since it was connected.
    fn info(&self) -> &ProviderInfo;

    /// How it has been of late. Cheap: nobody is asked.
    fn condition(&self) -> Condition {
        Condition::default()
    }

    /// Says whether it can be reached now.
    async fn check_health(&self) -> Result<()>;

    /// Makes a running instance. When this fails nothing is left, or what is left carries `spec.sandbox_id` and is found
    /// by [`Provider::list`]; the latter is told by `TimedOut` and `Unavailable` alone.
    async fn create(&self, spec: &InstanceSpec) -> Result<Instance>;

    /// What is known of one instance now; `None` when there is none.
    async fn inspect(&self, id: &str) -> Result<Option<Instance>>;

    /// All instances that Sandyard made here, those of other installations and of other tools left out.
    async fn list(&self) -> Result<Vec<Instance>>;

    /// Freezes it with its memory kept. Requires [`Capabilities::can_pause`]. Commands go on afterwards; whoever listens to them
    /// may be cut off meanwhile.
    async fn pause(&self, id: &str) -> Result<Instance>;

    /// Thaws it.
    async fn resume(&self, id: &str) -> Result<Instance>;

    /// Ends its processes and keeps its files. Requires [`Capabilities::can_stop`].
    async fn stop(&self, id: &str) -> Result<Instance>;

    /// Starts it again from its files.
    async fn start(&self, id: &str) -> Result<Instance>;

    /// Removes it and all it holds. Ends well only when nothing is left.
    async fn delete(&self, id: &str) -> Result<()>;

    /// Keeps its files as a template. Requires [`Capabilities::can_snapshot`].
    async fn snapshot(&self, id: &str, name: &str) -> Result<TemplateInfo>;

    /// Makes a running instance from its files as they are now; template and limits of `spec` are not looked at.
    /// Requires [`Capabilities::can_fork`].
    async fn fork(&self, id: &str, spec: &InstanceSpec) -> Result<Instance>;

    /// Lists what changed since its template. Requires [`Capabilities::can_diff`].
    async fn diff(&self, id: &str) -> Result<Vec<Change>>;

    /// What it uses now.
    async fn usage(&self, id: &str) -> Result<Usage>;

    /// Lists templates. Requires [`Capabilities::can_manage_templates`].
    async fn templates(&self) -> Result<Vec<TemplateInfo>>;

    /// Makes a template from a tar archive, compressed or not. Requires [`Capabilities::can_import_templates`].
    async fn import_template(&self, name: &str, archive: ArchiveReader) -> Result<TemplateInfo>;

    /// Removes a template. Sandboxes made from it live on. Requires [`Capabilities::can_manage_templates`].
    async fn remove_template(&self, name: &str) -> Result<()>;

    /// The client of an instance's agent. Nothing is dialled before its first call.
    async fn agent(&self, instance: &AgentAddress) -> Result<AgentClient>;

    /// Opens an instance's way out, or changes what it may reach from now on. Returns what of the policy this place cannot
    /// enforce, in words; empty: all of it holds. Nothing gets out of an instance that was not given one yet, where this place
    /// can see to that.
    async fn set_network(&self, id: &str, grant: &NetworkGrant) -> Result<Vec<String>>;

    /// What its sandboxes tried to reach, as it happens. Handed out once; none where it is not known.
    fn take_flows(&self) -> Option<mpsc::Receiver<Flow>> {
        None
    }

    /// Ends what this process does for its sandboxes: the server is about to end, they go on. Flows that it tells of from then on
    /// are the last.
    async fn close(&self) {}

    /// Keeps so many sandboxes of each template ready, where that makes creating faster; of all others none. A template that
    /// does not exist (yet) is passed over.
    async fn keep_ready(&self, wanted: &[Ready]) -> Result<()>;

    /// What it used between two moments, oldest first; as far back as is known. Requires [`Capabilities::can_recall_usage`].
    async fn usage_history(&self, id: &str, from_ms: i64, to_ms: i64) -> Result<Vec<UsagePoint>> {
        let _ = (id, from_ms, to_ms);
        Err(unsupported("keep a history of use"))
    }

    /// Makes an empty volume; one that is there already stays as it is. Requires [`Capabilities::can_mount`], like the two below.
    async fn create_volume(&self, volume: &VolumeSpec) -> Result<()> {
        let _ = volume;
        Err(unsupported("keep volumes"))
    }

    /// Removes a volume and all that is in it; removing a missing one succeeds. No instance has it any more.
    async fn delete_volume(&self, id: &str) -> Result<()> {
        let _ = id;
        Err(unsupported("keep volumes"))
    }

    /// An agent that sees the volume at [`VOLUME_PATH`] and belongs to nobody; commands and files are root's.
    async fn open_volume(&self, id: &str) -> Result<AgentClient> {
        let _ = id;
        Err(unsupported("keep volumes"))
    }
}

/// Where the agent of [`Provider::open_volume`] sees the volume.
pub const VOLUME_PATH: &str = "/volume";

fn unsupported(what: &str) -> ProviderError {
    let message = format!("this provider cannot {what}");
    ProviderError::new(ProviderErrorKind::Unsupported, message)
}

/// What is needed to reach an agent.
#[derive(Clone, PartialEq, Eq)]
pub struct AgentAddress {
    /// The instance.
    pub id: String,
    /// The token its agent was given.
    pub access_token: String,
}

impl Debug for AgentAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentAddress")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
