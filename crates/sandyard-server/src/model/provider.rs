//! The providers of this server, as answers show them.

use sandyard_provider::Capabilities;
use sandyard_service::ProviderView;

use crate::prelude::*;

/// Operations that a provider supports.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CapabilitiesView {
    /// Whether sandboxes can be paused with their memory kept.
    pause: bool,
    /// Whether sandboxes can be stopped with their files kept.
    stop: bool,
    /// Whether the files of a sandbox can be saved as a template.
    snapshot: bool,
    /// Whether a sandbox can be created from the files of a running one.
    fork: bool,
    /// Whether the changes since the template can be listed.
    diff: bool,
    /// Whether templates can be listed, imported and deleted.
    templates: bool,
    /// Whether limits of memory, CPU, processes and disk are enforced.
    limits: bool,
    /// Whether volumes can be mounted.
    volumes: bool,
    /// Whether past resource usage is available, not only the current one.
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

/// Health of a provider. Contains nothing about where it is or how it is reached, since anyone may read it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProviderHealth {
    /// Name of the provider: `embedded`, `docker` and so on.
    name: String,
    /// `healthy` or `unreachable`.
    status: &'static str,
    /// Time at which the status last changed (RFC 3339). Null if it never did.
    since: Option<String>,
    /// Whether the provider runs sandboxes whose request names no provider.
    default: bool,
    /// Operations that the provider supports.
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

/// Provider of the server.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProviderDetail {
    #[serde(flatten)]
    health: ProviderHealth,
    /// Template of sandboxes whose request names none.
    default_template: String,
    /// What the provider cannot do on this host, one sentence each; usually empty.
    limitations: Vec<String>,
    /// Old name of `limitations`. Will be removed in the next version.
    #[serde(rename = "lacks")]
    #[schema(deprecated)]
    deprecated_limitations: Vec<String>,
    /// Location of its sandboxes. Shown to admins only, once the provider was reached.
    location: Option<String>,
    /// Reason why the provider is unreachable. Shown to admins only.
    reason: Option<String>,
    /// Number of failed calls in a row.
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
            limitations: info.limitations.clone(),
            deprecated_limitations: info.limitations.clone(),
            location: location.filter(|_| is_admin),
            reason: condition.reason.clone().filter(|_| is_admin),
            failures: condition.failures,
        }
    }
}
