//! The contract between the lifecycle service and whatever runs sandboxes.

use std::fmt::Debug;

use async_trait::async_trait;
use sandyard_core::Limits;
use sandyard_core::network::Flow;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::error::{ProviderError, ProviderErrorKind};
use crate::instances::Instances;
use crate::templates::Templates;
use crate::usage::UsageReports;
use crate::volumes::Volumes;

/// Result of a provider call.
pub type Result<T, E = ProviderError> = std::result::Result<T, E>;

/// Runs sandboxes: [`Instances`], [`Templates`], [`Volumes`] and [`UsageReports`] of one location.
///
/// Only the lifecycle service calls a provider. It never runs two changing calls for the same instance at once; reads may
/// happen at any time. A dropped future may leave its work undone, half done or done: the caller asks [`Instances::inspect`] or
/// [`Instances::list`] before it decides anything. Every call except `create` and `fork` may be repeated.
///
/// A provider that passes every call on to another one implements [`Forward`](crate::Forward) and gets the four traits for free.
///
/// # Errors
///
/// - `NotFound`: there is no such instance, template or volume. Deleting a missing one succeeds.
/// - `Conflict`: the instance's state does not allow the call. Pausing a paused and resuming a running instance succeed.
/// - `Invalid`, `NoCapacity`, `Unsupported`, `TimedOut`, `Unavailable`, `Failed`: see [`ProviderErrorKind`].
#[async_trait]
pub trait Provider: Instances + Templates + Volumes + UsageReports + Debug {
    /// Name, location, capabilities and limits. Cheap: known since the provider was connected.
    fn info(&self) -> &ProviderInfo;

    /// Whether calls are let through, as observed from earlier calls. Cheap: nothing is sent.
    fn condition(&self) -> Condition {
        Condition::default()
    }

    /// Checks that the provider can be reached now.
    async fn check_health(&self) -> Result<()>;

    /// The stream of connection attempts of this provider's sandboxes. It can be taken once; `None` where the provider does not
    /// observe connections.
    fn take_flows(&self) -> Option<mpsc::Receiver<Flow>> {
        None
    }

    /// Ends what this process does for its sandboxes before the server ends; the sandboxes go on. Flows sent from then on are
    /// the last ones.
    async fn close(&self) {}
}

/// What a provider can do. The service checks this before a call, and answers `unsupported` itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Freezing an instance with its memory kept.
    pub can_pause: bool,
    /// Ending an instance's processes and keeping its files.
    pub can_stop: bool,
    /// Saving an instance's files as a template.
    pub can_snapshot: bool,
    /// Creating an instance from the files of a live one.
    pub can_fork: bool,
    /// Listing the files that changed since the template.
    pub can_diff: bool,
    /// Listing templates, and removing those that were created by this installation.
    pub can_manage_templates: bool,
    /// Creating templates from archives.
    #[serde(default)]
    pub can_import_templates: bool,
    /// Starting sandboxes from templates of a registry or cloud, by the names they have there.
    #[serde(default)]
    pub has_external_templates: bool,
    /// Enforcing limits on memory, processor, processes and disk.
    pub can_limit: bool,
    /// Volumes: folders that outlive instances.
    #[serde(default)]
    pub can_mount: bool,
    /// Reporting past usage, and not only current usage.
    #[serde(default)]
    pub can_recall_usage: bool,
}

impl Capabilities {
    /// No capability.
    pub const NONE: Self = Self {
        can_pause: false,
        can_stop: false,
        can_snapshot: false,
        can_fork: false,
        can_diff: false,
        can_manage_templates: false,
        can_import_templates: false,
        has_external_templates: false,
        can_limit: false,
        can_mount: false,
        can_recall_usage: false,
    };

    /// All capabilities.
    pub const ALL: Self = Self {
        can_pause: true,
        can_stop: true,
        can_snapshot: true,
        can_fork: true,
        can_diff: true,
        can_manage_templates: true,
        can_import_templates: true,
        has_external_templates: true,
        can_limit: true,
        can_mount: true,
        can_recall_usage: true,
    };
}

/// Whether a provider answers, as observed by its callers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// Whether calls are let through. They are not after several failures in a row, until the provider answers again.
    pub is_reachable: bool,
    /// When `is_reachable` last changed, in milliseconds since the Unix epoch.
    pub since_ms: Option<i64>,
    /// Number of consecutive failures.
    pub failures: u32,
    /// Message of the last failure.
    pub reason: Option<String>,
    /// Number of calls in progress.
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

/// What a provider reports about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderInfo {
    /// Its name in settings and answers: `embedded`, `docker`, …
    pub name: String,
    /// Identifies where its sandboxes are: two servers that report the same location reach the same sandboxes.
    pub location: String,
    /// What it can do.
    pub capabilities: Capabilities,
    /// Limits of a sandbox whose create request names none.
    pub default_limits: Limits,
    /// The largest limits a create request may ask for.
    pub max_limits: Limits,
    /// The template of a sandbox whose create request names none.
    pub default_template: String,
    /// What this provider cannot give any of its sandboxes, one sentence each.
    #[serde(rename = "lacks", alias = "limitations")]
    pub limitations: Vec<String>,
}

/// The error of a provider that cannot `what`.
pub(crate) fn unsupported(what: &str) -> ProviderError {
    let message = format!("this provider cannot {what}");
    ProviderError::new(ProviderErrorKind::Unsupported, message)
}
