//! The providers of this server, as answers show them.

use sandyard_provider::Capabilities;
use sandyard_service::ProviderView;
use serde::Serialize;
use utoipa::ToSchema;

use crate::time::optional_iso;

/// What can be done with sandboxes of a provider.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CapabilitiesView {
    /// Freezing with the memory kept.
    pause: bool,
    /// Shutdown the processes and keeping the files.
    stop: bool,
    /// Keeping the files as a template.
    snapshot: bool,
    /// Another sandbox from the files of a live one.
    fork: bool,
    /// Listing what changed since the template.
    diff: bool,
    /// Listing, importing and removing templates.
    templates: bool,
    /// Memory, processor, process and disk limits are enforced.
    limits: bool,
    /// Volumes.
    volumes: bool,
    /// Telling what was used of late, and not only what is used now.
    usage_history: bool,
}

impl From<Capabilities> for CapabilitiesView {
    fn from(can: Capabilities) -> Self {
        Self {
            pause: can.can_pause,
            stop: can.can_stop,
            snapshot: can.can_snapshot,
            fork: can.can_fork,
            diff: can.can_diff,
            templates: can.can_manage_templates,
            limits: can.can_limit,
            volumes: can.can_mount,
            usage_history: can.can_recall_usage,
        }
    }
}

/// How a provider is. Nothing in it tells where it is or how it is reached: everybody may see this.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProviderHealth {
    /// Its name: `embedded`, `docker`, …
    name: String,
    /// `healthy` or `unreachable`.
    status: &'static str,
    /// When that last changed, if it did.
    since: Option<String>,
    /// Whether it makes what nobody asks another one for.
    default: bool,
    capabilities: CapabilitiesView,
}

impl From<&ProviderView> for ProviderHealth {
    fn from(provider: &ProviderView) -> Self {
        Self {
            name: provider.info.name.clone(),
            status: match provider.condition.is_reachable {
                true => "healthy",
                false => "unreachable",
            },
            since: optional_iso(provider.condition.since_ms),
            default: provider.is_default,
            capabilities: provider.info.capabilities.into(),
        }
    }
}

/// A provider of this server.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProviderDetail {
    #[serde(flatten)]
    health: ProviderHealth,
    /// What sandboxes start from when their maker does not say.
    default_template: String,
    /// What it cannot give any sandbox, in words.
    lacks: Vec<String>,
    /// Where its sandboxes are; for admins, once it was reached.
    location: Option<String>,
    /// Why it cannot be reached; for admins.
    reason: Option<String>,
    /// Failures in a row.
    failures: u32,
}

impl ProviderDetail {
    /// What a caller may know of it.
    pub(crate) fn new(provider: &ProviderView, is_admin: bool) -> Self {
        let (info, condition) = (&provider.info, &provider.condition);
        let location = Some(info.location.clone()).filter(|location| !location.is_empty());
        Self {
            health: provider.into(),
            default_template: info.default_template.clone(),
            lacks: info.lacks.clone(),
            location: location.filter(|_| is_admin),
            reason: condition.reason.clone().filter(|_| is_admin),
            failures: condition.failures,
        }
    }
}
